// One call of a tool, with everything that is known of it: what it was given and what it answered only while the
// daemon has that in memory.
import { useEffect, useState } from "preact/hooks";
import type { ComponentChildren, VNode } from "preact";
import * as api from "../api.ts";
import { diffLines } from "../model/diff.ts";
import type { Operation } from "../model/kinds.ts";
import { link } from "../model/route.ts";
import { bounded, oneLine, printable } from "../model/printable.ts";
import { began, describe, duration, outcome, over, projectName, succeeded, threadName, time, took, words } from "../model/state.ts";
import * as world from "../world.ts";
import { Abort, LeftoversCard } from "./commands.tsx";
import { Output } from "./output.tsx";
import { Ago, Command, Copy, Elapsed, Fact, Id, moment, Name, Path, Pill, Section } from "./parts.tsx";

const lines = 5000;
const longest = 20_000; // characters of an argument or a text

type Asked<T> = { state: "reading" } | { state: "read"; value: T | undefined } | { state: "failed"; error: string };

/** useAsked asks for something that the daemon has in memory; again when the key changes. */
function useAsked<T>(ask: (signal: AbortSignal) => Promise<T | undefined>, key: string): Asked<T> {
  const [answer, setAnswer] = useState<Asked<T>>({ state: "reading" });
  useEffect(() => {
    const end = new AbortController();
    ask(end.signal).then(
      (value) => end.signal.aborted || setAnswer({ state: "read", value }),
      (err: Error) => end.signal.aborted || setAnswer({ state: "failed", error: err.message }),
    );
    return () => end.abort();
  }, [key]);
  return answer;
}

export function OperationView({ operation }: { operation: Operation }): VNode {
  const name = operation.metadata.name;
  const done = over(operation);
  const given = useAsked((signal) => api.argumentsOf(name, signal), name);
  const answer = useAsked(async (signal) => (done ? api.resultOf(name, signal) : undefined), `${name} ${done}`);
  const request = given.state === "read" ? given.value : undefined;
  const text = world.descriptionOf(name) || describe(operation, request);
  const diff = answer.state === "read" ? answer.value?.details?.patch || answer.value?.details?.diff : undefined;
  const c = succeeded(operation);
  return (
    <>
      <Head operation={operation} text={text} />
      {c.status === "False" && (
        <div class="failure">
          <p><strong>{words(c.reason ?? "Failed")}</strong>{operation.status?.code && <> <code>{oneLine(operation.status.code, 64)}</code></>}</p>
          {c.message && <p>{printable(c.message)}</p>}
          {operation.status?.effectsMayHaveOccurred && <p>Something may have changed all the same.</p>}
        </div>
      )}
      {(operation.status?.leftovers?.length ?? 0) > 0 && (
        <Section title="Left running" id="leftovers"><div class="card"><LeftoversCard operation={operation} /></div></Section>
      )}
      <Facts operation={operation} />
      {diff && <Section title="Diff" id="diff" aside={<Copy text={diff} what="diff" />}><Diff patch={diff} /></Section>}
      {operation.spec.tool === "bash" && (
        <Section title="Output" id="output">
          <Output id={name} running={!done} lines={lines} label="What the command prints" />
          {operation.status?.fullOutputPath && <p class="hint">The whole output is in <Path path={operation.status.fullOutputPath} /></p>}
        </Section>
      )}
      <Arguments given={given} />
      {operation.spec.tool !== "bash" && !diff && <Answer answer={answer} done={done} />}
    </>
  );
}

function Head({ operation, text }: { operation: Operation; text: string }): VNode {
  const thread = world.thread(world.threadOf(operation));
  const project = world.projectOf(thread?.spec.projectRef.name);
  const ms = took(operation);
  return (
    <div class="head">
      <nav class="crumbs" aria-label="Where this is">
        {project && <><a href={link("project", project.metadata.name)}><Name text={projectName(project)} /></a> › </>}
        {thread ? <a href={link("thread", thread.metadata.name)}><Name text={threadName(thread)} /></a> : "A thread that is gone"}
      </nav>
      <div class="title-row">
        <h1 tabIndex={-1}>{oneLine(operation.spec.tool, 40)}</h1>
        <Pill label={outcome(operation)} />
        {ms !== undefined ? <span class="num hint">{duration(ms)}</span> : <Elapsed since={began(operation)} />}
        <span class="grow" />
        {!over(operation) && <Abort operation={operation} />}
      </div>
      <div class="command-row">
        <Command text={bounded(text, longest)} />
        <Copy text={text} what="command" />
      </div>
    </div>
  );
}

function Facts({ operation }: { operation: Operation }): VNode {
  const { spec, status } = operation;
  const end = time(status?.completionTime);
  const changed = status?.changedPaths ?? [];
  return (
    <dl class="facts">
      <Fact term="Began"><span title={moment(began(operation))}>{moment(began(operation))}</span> <Ago prefix="· " at={began(operation)} /></Fact>
      {end > 0 && <Fact term="Ended">{moment(end)}</Fact>}
      {status?.exitCode !== undefined && <Fact term="Exit code">{status.exitCode}</Fact>}
      {status?.signal && <Fact term="Signal">{oneLine(status.signal, 32)}</Fact>}
      {spec.timeoutSeconds !== undefined && <Fact term="Timeout">{duration(spec.timeoutSeconds * 1000)}</Fact>}
      {status?.cwd && <Fact term="Directory"><Path path={status.cwd} /></Fact>}
      {changed.length > 0 && <Fact term="Changed">{changed.map((p) => <div key={p}><Path path={p} /></div>)}</Fact>}
      {status?.revision && <Fact term="Revision" wide><code>{oneLine(status.revision, 80)}</code></Fact>}
      {(status?.attempt?.number ?? 1) > 1 && <Fact term="Attempts">{status!.attempt!.number}</Fact>}
      {status?.attempt?.process && !over(operation) && <Fact term="Process">pid {status.attempt.process.pid}</Fact>}
      {status?.cancelledBy && <Fact term="Stopped by">{oneLine(status.cancelledBy, 64)}</Fact>}
      {spec.requestKey && <Fact term="Request key"><code><bdi>{oneLine(spec.requestKey, 200)}</bdi></code></Fact>}
      <Fact term="Operation" wide><Id id={operation.metadata.name} what="operation name" /></Fact>
    </dl>
  );
}

function Arguments({ given }: { given: Asked<Record<string, unknown>> }): VNode | null {
  if (given.state === "reading") return null;
  let content: ComponentChildren;
  if (given.state === "failed") content = <p class="hint">{given.error}</p>;
  else if (given.value === undefined) content = <p class="hint">No longer in the daemon’s memory. Arguments are never stored.</p>;
  else {
    content = (
      <dl class="arguments">
        {Object.entries(given.value).map(([key, value]) => (
          <Fact key={key} term={oneLine(key, 80)}><pre class="block" tabIndex={0}><bdi>{printable(bounded(typeof value === "string" ? value : JSON.stringify(value, null, 2), longest))}</bdi></pre></Fact>
        ))}
      </dl>
    );
  }
  return <Section title="Arguments" id="arguments">{content}</Section>;
}

function Answer({ answer, done }: { answer: Asked<api.Result>; done: boolean }): VNode | null {
  if (!done || answer.state === "reading") return null;
  const text = answer.state === "read" ? answer.value?.text : undefined;
  return (
    <Section title="Answer" id="answer">
      {text ? <pre class="block" tabIndex={0}>{printable(bounded(text, longest))}</pre> : <p class="hint">{answer.state === "failed" ? answer.error : "No longer in the daemon’s memory."}</p>}
    </Section>
  );
}

const marks = { add: "Added: ", del: "Removed: ", hunk: "", file: "", same: "" };

function Diff({ patch }: { patch: string }): VNode {
  const { lines, cut } = diffLines(patch);
  return (
    <div class="diff" tabIndex={0} role="region" aria-label="Changed lines" dir="ltr">
      {lines.map((l, i) => (
        <div key={i} class={l.kind}>{marks[l.kind] && <span class="sr">{marks[l.kind]}</span>}{printable(bounded(l.text, 2000)) || "\n"}</div>
      ))}
      {cut > 0 && <div class="mark">{cut.toLocaleString("en")} more lines</div>}
    </div>
  );
}
