// The page: it starts what runs beside it and shows what its address says.
import { render, type VNode } from "preact";
import { useEffect, useState } from "preact/hooks";
import { effect } from "@preact/signals";
import * as alerting from "./alerting.ts";
import * as api from "./api.ts";
import { listen } from "./keys.ts";
import type { Handoff, Operation } from "./model/kinds.ts";
import { oneLine, printable } from "./model/printable.ts";
import { link, type Route } from "./model/route.ts";
import { count, projectName, reasonText, threadName } from "./model/state.ts";
import { markRead, notice, route, spoken } from "./page.ts";
import * as world from "./world.ts";
import { Help, Question } from "./view/dialogs.tsx";
import { Header } from "./view/header.tsx";
import { Inbox } from "./view/handoffs.tsx";
import { Nav } from "./view/nav.tsx";
import { OperationView } from "./view/operation.tsx";
import { Overview } from "./view/overview.tsx";
import { ProjectView } from "./view/project.tsx";
import { ThreadView } from "./view/thread.tsx";

function Page(): VNode {
  const at = route.value;
  return (
    <div class={`page at-${at.at}`}>
      <a class="skip" href="#main" onClick={(e) => { e.preventDefault(); toHeading(); }}>To the content</a>
      <Header />
      <div class="panes">
        <Nav />
        <main id="main">
          {at.at !== "overview" && <a class="back" href={link("overview")}>‹ All threads</a>}
          {world.complete.value ? <Place at={at} /> : <Waiting />}
        </main>
      </div>
      <Question />
      <Help />
      <div class="notices" role="status">
        {notice.value && <p class={notice.value.bad ? "notice bad" : "notice"}>{printable(notice.value.text)}</p>}
      </div>
      <div class="sr" role="status">{spoken.value}</div>
    </div>
  );
}

function Waiting(): VNode {
  return (
    <>
      <h1 tabIndex={-1}>Rig Bridge</h1>
      <p class="hint">{world.link.value.state === "offline" ? "The daemon does not answer. The page goes on by itself when it does." : "Reading…"}</p>
    </>
  );
}

function Place({ at }: { at: Route }): VNode {
  switch (at.at) {
    case "inbox":
      return <Inbox />;
    case "thread": {
      const thread = world.thread(at.id);
      return thread ? <ThreadView key={at.id} thread={thread} /> : <Unknown what="thread" id={at.id} />;
    }
    case "project": {
      const project = world.projectOf(at.id);
      return project ? <ProjectView key={at.id} project={project} /> : <Unknown what="project" id={at.id} />;
    }
    case "operation":
      return <OperationPlace key={at.id} id={at.id} />;
    case "handoff":
      return <HandoffPlace key={at.id} id={at.id} />;
    default:
      return <Overview />;
  }
}

type Fetched<T> = { object?: T; failure?: string };

/** useFetched reads an object that the stream does not show. */
function useFetched<T>(live: T | undefined, find: () => Promise<T | undefined>): Fetched<T> {
  const [fetched, setFetched] = useState<Fetched<T>>({});
  const missing = live === undefined;
  useEffect(() => {
    if (!missing) return;
    const unless = (failure: string) => setFetched((before) => (before.object ? before : { failure }));
    find().then((object) => (object ? setFetched({ object }) : unless("")), (err: Error) => unless(err.message));
  }, [missing]);
  useEffect(() => {
    if (live !== undefined) setFetched({ object: live }); // it stays when it leaves the stream
  }, [live]);
  return live === undefined ? fetched : { object: live };
}

function OperationPlace({ id }: { id: string }): VNode {
  const { object, failure } = useFetched<Operation>(world.operation(id), () => api.find("operations", id));
  if (object) return <OperationView operation={object} />;
  return failure === undefined ? <p class="hint">Reading…</p> : <Unknown what="operation" id={id} failure={failure} />;
}

/** HandoffPlace opens a handoff: it is read now, and its thread is shown. */
function HandoffPlace({ id }: { id: string }): VNode {
  const { object, failure } = useFetched<Handoff>(world.handoff(id), () => api.find("handoffs", id));
  const unread = object !== undefined && !object.spec.acknowledged;
  useEffect(() => {
    if (unread) void markRead([id]);
  }, [unread]);
  if (!object) return failure === undefined ? <p class="hint">Reading…</p> : <Unknown what="handoff" id={id} failure={failure} />;
  const thread = world.thread(object.spec.threadRef.name);
  return thread ? <ThreadView thread={thread} handoff={id} /> : <Unknown what="thread" id={object.spec.threadRef.name} />;
}

function Unknown({ what, id, failure = "" }: { what: string; id: string; failure?: string }): VNode {
  return (
    <>
      <h1 tabIndex={-1}>Unknown {what}</h1>
      <p>{failure ? printable(failure) : <>There is no {what} <code><bdi>{oneLine(id, 100)}</bdi></code> here. It may have been deleted or pruned, or the link belongs to another computer.</>}</p>
      <p><a href={link("overview")}>Go to the overview</a></p>
    </>
  );
}

function toHeading(): void {
  document.querySelector<HTMLElement>("main h1")?.focus();
}

/** announce tells a screen reader what matters: a new handoff, and a daemon that is lost or back. */
function announce(): void {
  let known: Set<string> | undefined;
  let state = "";
  effect(() => {
    const now = world.link.value.state;
    if (now === "offline" && state === "live") spoken.value = "The daemon does not answer.";
    if (now === "live" && state === "offline") spoken.value = "The daemon is back.";
    if (now === "live" || now === "offline") state = now;
  });
  effect(() => {
    const unread = world.unread.value;
    if (!world.complete.value) return;
    const fresh = known ? unread.filter((h) => !known!.has(h.metadata.name)) : [];
    known = new Set(unread.map((h) => h.metadata.name));
    const [first] = fresh;
    if (!first) return;
    const thread = world.mirror.objects.threads.get(first.spec.threadRef.name);
    spoken.value = fresh.length > 1 ? `${count(fresh.length, "new handoff")}.` : `Your turn: ${thread ? oneLine(threadName(thread), 80) : "a thread"}, ${reasonText(first.spec.reason)}.`;
  });
}

/** title names what is shown, and how much waits. */
function title(): string {
  const unread = world.unread.value.length;
  const at = route.value;
  const thread = at.at === "thread" ? world.thread(at.id) : undefined;
  const project = at.at === "project" ? world.projectOf(at.id) : undefined;
  const name = thread ? threadName(thread) : project ? projectName(project) : at.at === "inbox" ? "Inbox" : "";
  return `${unread > 0 ? `(${unread}) ` : ""}${name ? `${oneLine(name, 60)} · ` : ""}Rig Bridge`;
}

const { check } = world.start();
alerting.start();
listen();
announce();
effect(() => {
  document.title = title();
});
document.addEventListener("visibilitychange", () => document.hidden || check());
addEventListener("online", check);
render(<Page />, document.getElementById("page")!);
addEventListener("hashchange", () => {
  scrollTo(0, 0);
  document.getElementById("main")!.scrollTop = 0;
  requestAnimationFrame(toHeading);
});
