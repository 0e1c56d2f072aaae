// What runs, what waits for the person, who asks: everything that is going on, over all projects.
import type { VNode } from "preact";
import { link } from "../model/route.ts";
import { count } from "../model/state.ts";
import { oneLine } from "../model/printable.ts";
import { markRead } from "../page.ts";
import * as world from "../world.ts";
import { Leftovers, lasting, Running } from "./commands.tsx";
import { HandoffCard } from "./handoffs.tsx";
import { Threads } from "./nav.tsx";
import { Ago, Section } from "./parts.tsx";

const most = 20;

export function Overview(): VNode {
  const unread = world.unread.value;
  const running = lasting(world.running.value);
  const operations = [...world.operationsOfThread.value.values()].flat();
  const threads = world.threads.value;
  return (
    <>
      <h1 tabIndex={-1}>Overview</h1>
      {unread.length > 0 && (
        <Section title={`Your turn (${unread.length})`} id="turn" aside={<button type="button" onClick={() => void markRead(unread.map((h) => h.metadata.name))}>Mark all read</button>}>
          {unread.slice(0, 5).map((h) => <HandoffCard key={h.metadata.name} handoff={h} withThread />)}
          {unread.length > 5 && <a href={link("inbox")}>All {unread.length} in the inbox</a>}
        </Section>
      )}
      <Section title={`Running (${running.length})`} id="running">
        {running.length === 0 ? <p class="hint">No command runs.</p> : <Running operations={running.slice(0, most)} withThread />}
        {running.length > most && <p class="hint">and {running.length - most} more</p>}
      </Section>
      <Leftovers operations={operations} />
      <Clients />
      {threads.length > 0 && (
        <Section title="Last used" id="last-used">
          <Threads threads={threads.slice(0, 8)} withProject />
        </Section>
      )}
      {threads.length === 0 && <Beginning />}
    </>
  );
}

function Clients(): VNode | null {
  const clients = [...world.clients.value].sort((a, b) => (b.lastTime ?? 0) - (a.lastTime ?? 0));
  if (clients.length === 0) return null;
  return (
    <Section title="Assistants" id="clients">
      <table class="clients">
        <thead>
          <tr><th scope="col">Client</th><th scope="col">Last request</th><th scope="col" class="right">Requests</th><th scope="col" class="right">When</th></tr>
        </thead>
        <tbody>
          {clients.slice(0, most).map((c, i) => (
            <tr key={`${c.name} ${c.version} ${c.userAgent} ${i}`}>
              <td><bdi title={c.userAgent ? oneLine(c.userAgent, 200) : undefined}>{oneLine(c.name || c.userAgent || "unnamed", 60)}</bdi> {c.version && <span class="hint">{oneLine(c.version, 30)}</span>}</td>
              <td class="mono">{oneLine(c.lastTool || c.lastMethod || "", 60)}</td>
              <td class="num right">{(c.requests ?? 0).toLocaleString("en")}</td>
              <td class="right"><Ago at={c.lastTime ?? 0} /></td>
            </tr>
          ))}
        </tbody>
      </table>
    </Section>
  );
}

function Beginning(): VNode {
  return (
    <p class="beginning">
      Connect an assistant to this daemon and ask it to open a project with <code>workspace_open</code>: its threads appear here by themselves.
      {world.projects.value.length > 0 && ` ${count(world.projects.value.length, "project")} known.`}
    </p>
  );
}
