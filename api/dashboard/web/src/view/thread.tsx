// One thread: where it stands, what runs, what was done.
import { useEffect, useState } from "preact/hooks";
import type { VNode } from "preact";
import * as api from "../api.ts";
import type { Handoff, Run, Thread, Workspace } from "../model/kinds.ts";
import { link } from "../model/route.ts";
import { oneLine } from "../model/printable.ts";
import { began, duration, over, projectName, runLabel, threadLabel, threadName, time } from "../model/state.ts";
import { attempt, markRead, question } from "../page.ts";
import * as world from "../world.ts";
import { Activity, lasting, Leftovers, Running } from "./commands.tsx";
import { HandoffCard } from "./handoffs.tsx";
import { Ago, Copy, Elapsed, Fact, Id, More, Name, Path, Pill, Section } from "./parts.tsx";

/** ThreadView shows a thread; handoff is the one that was opened. */
export function ThreadView({ thread, handoff }: { thread: Thread; handoff?: string }): VNode {
  const id = thread.metadata.name;
  const workspace = world.workspaceOfThread.value.get(id);
  const online = world.link.value.state === "live";
  useEffect(() => {
    if (online) void world.look(id, workspace === undefined || world.earlier.value?.operations !== undefined);
  }, [id, online, workspace === undefined]);
  const handoffs = world.withEarlier("handoffs", id, world.handoffsOfThread.value.get(id) ?? [], world.created);
  const unread = handoffs.filter((h) => !h.spec.acknowledged);
  const first = handoffs.filter((h) => !h.spec.acknowledged || h.metadata.name === handoff); // the opened one stays in sight
  const operations = world.withEarlier("operations", id, world.operationsOfThread.value.get(id) ?? [], began);
  const running = lasting(operations.filter((o) => !over(o)).reverse());
  return (
    <>
      <Head thread={thread} workspace={workspace} latest={handoffs[0]} unread={unread} />
      {first.length > 0 && (
        <Section title={unread.length > 0 ? `Your turn (${unread.length})` : "Handoff"} id="turn">
          {first.map((h) => <HandoffCard key={h.metadata.name} handoff={h} current={h.metadata.name === handoff} />)}
        </Section>
      )}
      {running.length > 0 && (
        <Section title={`Running (${running.length})`} id="running">
          <Running operations={running} />
        </Section>
      )}
      <Leftovers operations={operations} />
      <Section title="Recent activity" id="activity" aside={<EarlierButton thread={id} />}>
        <Activity operations={operations.filter(over)} />
      </Section>
      <Runs runs={world.withEarlier("runs", id, world.runsOfThread.value.get(id) ?? [], world.runBegan)} />
      <Handoffs handoffs={handoffs.filter((h) => !first.includes(h))} />
    </>
  );
}

function Head({ thread, workspace, latest, unread }: { thread: Thread; workspace: Workspace | undefined; latest: Handoff | undefined; unread: Handoff[] }): VNode {
  const project = world.projectOf(thread.spec.projectRef.name);
  const name = threadName(thread);
  const run = thread.status?.currentRunRef?.name;
  const place = [workspace?.status?.account, workspace?.status?.host].filter(Boolean).join(" on ");
  return (
    <div class="head">
      <nav class="crumbs" aria-label="Where this is">
        {project ? <a href={link("project", project.metadata.name)}><Name text={projectName(project)} /></a> : "A project that is gone"}
      </nav>
      <div class="title-row">
        <h1 tabIndex={-1}><Name text={name} /></h1>
        <Pill label={threadLabel(thread, latest)} />
        <span class="grow" />
        {unread.length > 0 && <button type="button" onClick={() => void markRead(unread.map((h) => h.metadata.name))}>Mark thread read</button>}
        {workspace && <button type="button" class="quiet" onClick={() => askClose(workspace, name)}>Close workspace</button>}
      </div>
      <dl class="facts">
        <Fact term="Checkout"><Path path={thread.spec.cwd} /><Copy text={thread.spec.cwd} what="checkout path" /></Fact>
        <Fact term="Workspace">{workspace ? <Connected workspace={workspace} place={place} /> : <span>Saved; resume it through MCP with the thread’s id</span>}</Fact>
        <Fact term="Thread"><Id id={thread.metadata.name} what="thread id" /></Fact>
        {run && <Fact term="Run"><Id id={run} what="run id" /></Fact>}
        <Fact term="Last used"><Ago at={world.lastUsed(thread)} /></Fact>
      </dl>
    </div>
  );
}

function Connected({ workspace, place }: { workspace: Workspace; place: string }): VNode {
  const ready = workspace.status?.conditions?.find((c) => c.type === "Ready");
  return (
    <>
      <Id id={workspace.metadata.name} what="workspace id" />
      <span class="hint">{ready?.status === "False" ? oneLine(ready.message || ready.reason || "not ready") : `connected${place ? `, ${oneLine(place, 100)}` : ""}`}</span>
    </>
  );
}

function askClose(workspace: Workspace, name: string): void {
  question.value = {
    title: "Close the workspace?",
    text: "Its running calls are stopped. The thread stays, and the assistant can open it again with its id.",
    subject: name,
    yes: "Close it",
    act: () => attempt(() => api.close(workspace.metadata.name)),
    moot: () => (world.workspaceOfThread.value.get(workspace.spec.threadRef.name)?.metadata.name === workspace.metadata.name ? "" : "It is closed already."),
  };
}

function EarlierButton({ thread }: { thread: string }): VNode | null {
  const e = world.earlier.value;
  if (e?.thread !== thread) return null;
  if (e.state === "loading") return <span class="hint">Reading…</span>;
  if (e.state === "failed") return <span class="hint">{e.error} <button type="button" class="quiet" onClick={() => void world.look(thread, true)}>Try again</button></span>;
  if (e.operations) return null;
  return <button type="button" class="quiet" onClick={() => void world.look(thread, true)}>Show earlier activity</button>;
}

function Runs({ runs }: { runs: Run[] }): VNode | null {
  if (runs.length === 0) return null;
  return (
    <Section title="Runs" id="runs">
      <ul class="lines">
        {runs.slice(0, 20).map((r) => {
          const from = world.runBegan(r);
          const to = time(r.status?.completionTime);
          return (
            <li key={r.metadata.name}>
              <Pill label={runLabel(r)} />
              <span class="what">
                <Name text={r.spec.title || "Untitled run"} />
                {r.status?.summary && <span class="reason">{oneLine(r.status.summary, 200)}</span>}
              </span>
              <span class="num hint">{to > 0 ? duration(to - from) : r.status?.phase === "Interrupted" ? "" : <Elapsed since={from} />}</span>
              <Ago at={from} />
            </li>
          );
        })}
      </ul>
    </Section>
  );
}

function Handoffs({ handoffs }: { handoffs: Handoff[] }): VNode | null {
  const [shown, setShown] = useState(10);
  if (handoffs.length === 0) return null;
  return (
    <Section title="Handoffs" id="handoffs">
      {handoffs.slice(0, shown).map((h) => <HandoffCard key={h.metadata.name} handoff={h} />)}
      <More left={handoffs.length - shown} what="handoffs" show={() => setShown(shown + 50)} />
    </Section>
  );
}
