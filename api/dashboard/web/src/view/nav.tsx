// Projects and their threads. Long lists show their beginning, and a filter finds the rest. The order stays as it is
// while the pointer or the focus is in the list, so nothing moves away from under them.
import { useRef, useState } from "preact/hooks";
import type { VNode } from "preact";
import type { Project, Thread } from "../model/kinds.ts";
import { link } from "../model/route.ts";
import { oneLine } from "../model/printable.ts";
import { count, projectName, threadLabel, threadName } from "../model/state.ts";
import { filter, route } from "../page.ts";
import * as world from "../world.ts";
import { Ago, Dot, More, Name } from "./parts.tsx";

const firstThreads = 6; // of a project
const moreThreads = 50;
const found = 100; // threads that a filter shows first

export function Nav(): VNode {
  const still = useStill();
  const at = route.value;
  const unread = world.unread.value.length;
  return (
    <nav class="side" aria-label="Threads" {...still.handlers}>
      <ul class="places">
        <li><a href={link("overview")} aria-current={at.at === "overview" ? "page" : undefined}>Overview</a></li>
        <li>
          <a href={link("inbox")} aria-current={at.at === "inbox" ? "page" : undefined}>
            Your turn · Inbox ({unread})
          </a>
        </li>
      </ul>
      <Filter />
      {filter.value.trim() === "" ? <Projects still={still} /> : <Found />}
    </nav>
  );
}

function Filter(): VNode {
  return (
    <input
      id="filter"
      type="search"
      class="filter"
      placeholder="Filter projects and threads"
      aria-label="Filter projects and threads"
      autocomplete="off"
      spellcheck={false}
      value={filter.value}
      onInput={(e) => (filter.value = e.currentTarget.value)}
    />
  );
}

function Projects({ still }: { still: Still }): VNode {
  const projects = still.order("projects", world.projects.value);
  if (projects.length === 0) return <p class="hint">No project yet. It appears when an assistant opens one.</p>;
  return (
    <>
      {projects.map((p) => (
        <ProjectGroup key={p.metadata.name} project={p} still={still} />
      ))}
    </>
  );
}

function ProjectGroup({ project, still }: { project: Project; still: Still }): VNode {
  const id = project.metadata.name;
  const [open, setOpen] = useState(true);
  const [shown, setShown] = useState(firstThreads);
  const threads = still.order(id, world.threadsOfProject.value.get(id) ?? []);
  const current = selectedThread();
  const beginning = threads.slice(0, shown);
  const selected = threads.find((t) => t.metadata.name === current);
  if (selected && !beginning.includes(selected)) beginning.push(selected);
  const unread = world.unreadOfProject.value.get(id) ?? 0;
  const name = projectName(project);
  return (
    <section class="project" aria-label={name}>
      <div class="project-head">
        <button type="button" class="fold" aria-expanded={open} aria-label={`Threads of ${name}`} onClick={() => setOpen(!open)}>
          <span aria-hidden="true">{open ? "▾" : "▸"}</span>
        </button>
        <a href={link("project", id)} title={oneLine(project.spec.root, 4096)} aria-current={route.value.at === "project" && route.value.id === id ? "page" : undefined}>
          <Name text={name} />
        </a>
        {unread > 0 && <span class="badge" aria-label={`${unread} unread`}>{unread}</span>}
        <span class="quantity" aria-label={count(threads.length, "thread")}>{threads.length.toLocaleString("en")}</span>
      </div>
      {open && (
        <>
          <Threads threads={beginning} />
          <More left={threads.length - beginning.length} what="threads" show={() => setShown(shown + moreThreads)} />
        </>
      )}
    </section>
  );
}

/** Found are the threads whose title, directory, id or project has all words of the filter. */
function Found(): VNode {
  const [shown, setShown] = useState(found);
  const words = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
  const threads = world.threads.value.filter((t) => {
    const p = world.projectOf(t.spec.projectRef.name);
    const text = `${t.spec.title ?? ""}\n${t.spec.cwd}\n${t.metadata.name}\n${p ? projectName(p) : ""}`.toLowerCase();
    return words.every((w) => text.includes(w));
  });
  return (
    <>
      <p class="hint" role="status">{count(threads.length, "thread")} found</p>
      <Threads threads={threads.slice(0, shown)} withProject />
      <More left={threads.length - shown} what="threads" show={() => setShown(shown + found)} />
    </>
  );
}

export function Threads({ threads, withProject = false }: { threads: Thread[]; withProject?: boolean }): VNode {
  return (
    <ul class="threads">
      {threads.map((t) => (
        <ThreadRow key={t.metadata.name} thread={t} withProject={withProject} />
      ))}
    </ul>
  );
}

function ThreadRow({ thread, withProject }: { thread: Thread; withProject: boolean }): VNode {
  const id = thread.metadata.name;
  const handoffs = world.handoffsOfThread.value.get(id);
  const label = threadLabel(thread, handoffs?.[0]);
  const running = world.runningOfThread.value.get(id)?.length ?? 0;
  const unread = handoffs?.some((h) => !h.spec.acknowledged) ?? false;
  const project = withProject ? world.projectOf(thread.spec.projectRef.name) : undefined;
  return (
    <li>
      <a class={unread ? "thread unread" : "thread"} href={link("thread", id)} aria-current={selectedThread() === id ? "page" : undefined}>
        <Dot tone={running > 0 ? "busy" : label.tone} />
        <span class="title"><Name text={threadName(thread)} /></span>
        <Ago at={world.lastUsed(thread)} />
        <span class={`state ${label.tone}`}>
          {project && <><Name text={projectName(project)} /> · </>}
          {label.text}{running > 0 && ` · ${running} running`}
        </span>
      </a>
    </li>
  );
}

/** selectedThread is the thread that the page shows, or that of what it shows. */
export function selectedThread(): string | undefined {
  const at = route.value;
  switch (at.at) {
    case "thread":
      return at.id;
    case "handoff":
      return world.handoff(at.id)?.spec.threadRef.name;
    case "operation": {
      const o = world.operation(at.id);
      return o && world.threadOf(o);
    }
    default:
      return undefined;
  }
}

interface Still {
  handlers: Record<string, (e: Event) => void>;
  order: <T extends { metadata: { name: string } }>(list: string, items: T[]) => T[];
}

/** useStill keeps the order of lists while somebody is at them. What is new comes first. */
function useStill(): Still {
  const busy = useRef({ pointer: false, focus: false });
  const orders = useRef(new Map<string, Map<string, number>>());
  return {
    handlers: {
      onPointerEnter: () => (busy.current.pointer = true),
      onPointerLeave: () => (busy.current.pointer = false),
      onFocusIn: () => (busy.current.focus = true),
      onFocusOut: () => (busy.current.focus = false),
    },
    order: (list, items) => {
      const before = orders.current.get(list);
      const ordered = before && (busy.current.pointer || busy.current.focus)
        ? [...items].sort((a, b) => (before.get(a.metadata.name) ?? -1) - (before.get(b.metadata.name) ?? -1))
        : items;
      orders.current.set(list, new Map(ordered.map((item, i) => [item.metadata.name, i])));
      return ordered;
    },
  };
}
