// Calls of tools: those that run, what they left running, and those that are over.
import { useEffect, useState } from "preact/hooks";
import type { VNode } from "preact";
import * as api from "../api.ts";
import type { Operation } from "../model/kinds.ts";
import { link } from "../model/route.ts";
import { bounded, oneLine } from "../model/printable.ts";
import { began, count, describe, duration, outcome, over, succeeded, threadName, time, took } from "../model/state.ts";
import { attempt, question } from "../page.ts";
import { now } from "../ticker.ts";
import * as world from "../world.ts";
import { Ago, Command, Dot, Elapsed, More, Name, Pill, Section } from "./parts.tsx";
import { Output } from "./output.tsx";

const cardLines = 300;
const shownCommand = 2000; // characters of a command on its card

/** description is what a call does, as far as it is known. */
export function description(o: Operation): string {
  return world.descriptionOf(o.metadata.name) || describe(o, undefined);
}

/** plain says whether the description shows by itself what tool it is of. */
function plain(o: Operation, text: string): boolean {
  return o.spec.tool === "bash" || text.startsWith(o.spec.tool);
}

/** lasting leaves out calls of a moment, which would only flicker: those other than commands, in their first second. */
export function lasting(operations: Operation[]): Operation[] {
  return operations.filter((o) => o.spec.tool === "bash" || now() - began(o) > 1000);
}

/** Running are cards of the operations that run. */
export function Running({ operations, withThread = false }: { operations: Operation[]; withThread?: boolean }): VNode {
  return (
    <ul class="cards">
      {operations.map((o) => (
        <li key={o.metadata.name} class="card running">
          <RunningCard operation={o} withThread={withThread} />
        </li>
      ))}
    </ul>
  );
}

function RunningCard({ operation, withThread }: { operation: Operation; withThread: boolean }): VNode {
  const name = operation.metadata.name;
  const text = description(operation);
  const thread = withThread ? world.thread(world.threadOf(operation)) : undefined;
  return (
    <>
      <div class="card-head">
        <Pill label={outcome(operation)} />
        <Elapsed since={began(operation)} />
        {thread && <a class="in" href={link("thread", thread.metadata.name)}><Name text={threadName(thread)} /></a>}
        <span class="grow" />
        <a href={link("operation", name)}>Details<span class="sr"> of {oneLine(text, 60)}</span></a>
        <Abort operation={operation} />
      </div>
      <Command text={bounded(text, shownCommand)} />
      {operation.spec.tool === "bash" && <Output id={name} running lines={cardLines} label={`Output of ${oneLine(text, 60)}`} />}
    </>
  );
}

export function Abort({ operation }: { operation: Operation }): VNode {
  const asked = operation.spec.cancel === true;
  const text = description(operation);
  return (
    <button type="button" class="danger" disabled={asked} aria-label={`Abort ${oneLine(text, 60)}`} onClick={() => askAbort(operation.metadata.name, text)}>
      {asked ? "Stopping…" : "Abort"}
    </button>
  );
}

function askAbort(name: string, text: string): void {
  question.value = {
    title: "Abort this command?",
    text: "It is asked to stop (SIGTERM) and killed after 2 seconds. The assistant is told that a person stopped it.",
    subject: text,
    yes: "Abort it",
    act: () => attempt(() => api.cancel(name)),
    moot: () => {
      const o = world.operation(name);
      return o && !over(o) ? "" : "It has ended meanwhile.";
    },
  };
}

/** Leftovers are processes that commands left running. */
export function Leftovers({ operations }: { operations: Operation[] }): VNode | null {
  const left = operations.filter((o) => over(o) && (o.status?.leftovers?.length ?? 0) > 0);
  if (left.length === 0) return null;
  return (
    <Section title={`Left running (${left.length})`} id="leftovers">
      <ul class="cards">
        {left.map((o) => (
          <li key={o.metadata.name} class="card">
            <LeftoversCard operation={o} />
          </li>
        ))}
      </ul>
    </Section>
  );
}

export function LeftoversCard({ operation }: { operation: Operation }): VNode {
  const processes = operation.status?.leftovers ?? [];
  const asked = operation.spec.cancel === true;
  const text = description(operation);
  return (
    <>
      <div class="card-head">
        <span>{count(processes.length, "process").replace(/processs$/, "processes")} of</span>
        <a class="in mono" href={link("operation", operation.metadata.name)}><Name text={text} width={80} /></a>
        <span class="grow" />
        <button type="button" class="danger" disabled={asked} aria-label={`Stop what ${oneLine(text, 60)} left running`} onClick={() => askStop(operation.metadata.name, text)}>
          {asked ? "Stopping…" : "Stop"}
        </button>
      </div>
      <ul class="processes">
        {processes.map((p) => (
          <li key={p.pid}><bdi class="mono">{oneLine(p.command || "?", 64)}</bdi> <span class="hint">pid {p.pid}{p.beginTime && <>, <Elapsed since={time(p.beginTime)} /> old</>}</span></li>
        ))}
      </ul>
    </>
  );
}

function askStop(name: string, text: string): void {
  question.value = {
    title: "Stop what it left running?",
    text: "The processes get SIGTERM, and SIGKILL after 2 seconds.",
    subject: text,
    yes: "Stop them",
    act: () => attempt(() => api.cancel(name)),
    moot: () => (world.operation(name)?.status?.leftovers?.length === 0 ? "They have ended meanwhile." : ""),
  };
}

const firstRows = 20;

/** Activity is a table of calls that are over. */
export function Activity({ operations }: { operations: Operation[] }): VNode {
  const [shown, setShown] = useState(firstRows);
  useEffect(() => setShown(firstRows), [operations[0]?.spec.threadRef?.name]);
  if (operations.length === 0) return <p class="hint">Nothing yet.</p>;
  return (
    <>
      <table class="activity">
        <thead>
          <tr><th scope="col">Outcome</th><th scope="col">Call</th><th scope="col" class="right">Took</th><th scope="col" class="right">When</th></tr>
        </thead>
        <tbody>
          {operations.slice(0, shown).map((o) => (
            <Row key={o.metadata.name} operation={o} />
          ))}
        </tbody>
      </table>
      <More left={operations.length - shown} what="calls" show={() => setShown(shown + 100)} />
    </>
  );
}

function Row({ operation }: { operation: Operation }): VNode {
  const label = outcome(operation);
  const c = succeeded(operation);
  const ms = took(operation);
  const text = description(operation);
  const end = operation.status?.completionTime ? Date.parse(operation.status.completionTime) : began(operation);
  return (
    <tr>
      <td class="outcome"><span class={`tone ${label.tone}`}><Dot tone={label.tone} />{label.text}</span></td>
      <td class="call">
        <a class="mono" href={link("operation", operation.metadata.name)}>
          {!plain(operation, text) && <span class="tool">{oneLine(operation.spec.tool, 40)} </span>}
          <Name text={text} width={160} />
        </a>
        {c.status === "False" && c.message && <span class="reason">{oneLine(c.message, 200)}</span>}
      </td>
      <td class="num right">{ms === undefined ? "" : duration(ms)}</td>
      <td class="right"><Ago at={end} /></td>
    </tr>
  );
}
