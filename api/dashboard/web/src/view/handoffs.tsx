// What the assistant reported: it is the person's turn.
import { useState } from "preact/hooks";
import type { VNode } from "preact";
import type { Handoff } from "../model/kinds.ts";
import { link } from "../model/route.ts";
import { deliveryText, handoffTone, projectName, reasonText, threadName } from "../model/state.ts";
import { markRead } from "../page.ts";
import * as world from "../world.ts";
import { Ago, More, Name, Pill, Prose, Section } from "./parts.tsx";

const firstRead = 20;

/** HandoffCard is a handoff with its summary. In the inbox it names its thread, and opening it marks it read. */
export function HandoffCard({ handoff, withThread = false, current = false }: { handoff: Handoff; withThread?: boolean; current?: boolean }): VNode {
  const id = handoff.metadata.name;
  const unread = !handoff.spec.acknowledged;
  const thread = world.thread(handoff.spec.threadRef.name);
  const project = world.projectOf(thread?.spec.projectRef.name);
  const name = thread ? threadName(thread) : "A thread that is gone";
  const reason = reasonText(handoff.spec.reason);
  return (
    <article class={unread ? "card handoff unread" : "card handoff"} aria-label={`${unread ? "Unread: " : ""}${reason}${withThread ? `, ${name}` : ""}`} aria-current={current ? "true" : undefined}>
      <div class="card-head">
        <Pill label={{ text: reason.slice(0, 1).toUpperCase() + reason.slice(1), tone: handoffTone(handoff) }} />
        {withThread && (
          <a class="in" href={link("handoff", id)}>
            {project && <><Name text={projectName(project)} /> · </>}<Name text={name} />
          </a>
        )}
        <Ago at={world.created(handoff)} />
        <span class="grow" />
        {unread && <button type="button" aria-label={`Mark read: ${reason}, ${name}`} onClick={() => void markRead([id])}>Mark read</button>}
      </div>
      <Prose text={handoff.spec.summary} />
      {deliveryText(handoff) && <p class="hint">{deliveryText(handoff)}</p>}
    </article>
  );
}

/** Inbox is all that waits for the person, and below what has been read. */
export function Inbox(): VNode {
  const unread = world.unread.value;
  const read = world.handoffs.value.filter((h) => h.spec.acknowledged);
  const [shown, setShown] = useState(firstRead);
  return (
    <>
      <div class="title-row">
        <h1 tabIndex={-1}>Your turn · Inbox ({unread.length})</h1>
        {unread.length > 0 && <button type="button" onClick={() => void markRead(unread.map((h) => h.metadata.name))}>Mark all read</button>}
      </div>
      {unread.length === 0 && <p class="hint">Nothing waits for you.</p>}
      {unread.map((h) => <HandoffCard key={h.metadata.name} handoff={h} withThread />)}
      {read.length > 0 && (
        <Section title="Read" id="read">
          {read.slice(0, shown).map((h) => <HandoffCard key={h.metadata.name} handoff={h} withThread />)}
          <More left={read.length - shown} what="handoffs" show={() => setShown(shown + 100)} />
        </Section>
      )}
    </>
  );
}
