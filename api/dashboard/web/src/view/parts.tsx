// Small parts that several views use.
import { useEffect, useMemo, useRef } from "preact/hooks";
import type { ComponentChildren, VNode } from "preact";
import { oneLine, printable } from "../model/printable.ts";
import { ago, elapsed, type Label, type Tone } from "../model/state.ts";
import { copy } from "../page.ts";
import { tick } from "../ticker.ts";

/** Name shows a name of somebody else's making: printable, and apart from the direction of what is around it. */
export function Name({ text, width = 200 }: { text: string; width?: number }): VNode {
  return <bdi>{oneLine(text, width)}</bdi>;
}

/** Prose shows a text of several lines. */
export function Prose({ text }: { text: string }): VNode {
  return <div class="prose" dir="auto">{printable(text)}</div>;
}

/** Command shows a command; a long one scrolls, by keys too. */
export function Command({ text }: { text: string }): VNode {
  return <pre class="command" tabIndex={0}><bdi>{printable(text)}</bdi></pre>;
}

/** Path shows a path; a long one loses its middle to the eye, not to the reader. */
export function Path({ path }: { path: string }): VNode {
  const shown = oneLine(path, 4096);
  return <bdi class="path" title={shown}>{shown}</bdi>;
}

export function Pill({ label }: { label: Label }): VNode {
  return <span class={`pill ${label.tone}`}><Dot tone={label.tone} />{label.text}</span>;
}

export function Dot({ tone }: { tone: Tone }): VNode {
  return <span class={`dot ${tone}`} aria-hidden="true" />;
}

/** Elapsed ticks while something lasts. */
export function Elapsed({ since }: { since: number }): VNode {
  return <Ticking at={since} text={(now) => elapsed(now - since)} />;
}

/** Ago tells how long something lies back; the exact time is its title. */
export function Ago({ at, prefix = "" }: { at: number; prefix?: string }): VNode | null {
  if (at === 0) return null;
  return <Ticking at={at} text={(now) => prefix + ago(now - at)} />;
}

function Ticking({ at, text }: { at: number; text: (now: number) => string }): VNode {
  const ref = useRef<HTMLTimeElement>(null);
  const exact = useMemo(() => ({ machine: new Date(at).toISOString(), human: moment(at) }), [at]);
  useEffect(() => tick(ref.current!, text), [at]);
  return <time ref={ref} class="num" dateTime={exact.machine} title={exact.human} />;
}

// Formats are dear to make.
const day = new Intl.DateTimeFormat(undefined, { dateStyle: "medium" });
const minutes = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", hourCycle: "h23" });
const seconds = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" });

/** moment is a time in full, clock is its time of day. */
export function moment(at: number): string {
  return `${day.format(at)}, ${seconds.format(at)}`;
}

export function clock(at: number, withSeconds = false): string {
  return (withSeconds ? seconds : minutes).format(at);
}

/** Id is an identifier that can be copied. */
export function Id({ id, what }: { id: string; what: string }): VNode {
  return (
    <span class="id">
      <code>{printable(id)}</code>
      <Copy text={id} what={what} />
    </span>
  );
}

export function Copy({ text, what }: { text: string; what: string }): VNode {
  return <button type="button" class="quiet" aria-label={`Copy ${what}`} onClick={() => void copy(text, what)}>Copy</button>;
}

/** Switch is on or off. */
export function Switch({ on, change, disabled, children }: { on: boolean; change: (on: boolean) => void; disabled?: boolean; children: ComponentChildren }): VNode {
  return (
    <button type="button" role="switch" class="switch" aria-checked={on} disabled={disabled} onClick={() => change(!on)}>
      <span class="track" aria-hidden="true" />
      {children}
    </button>
  );
}

export function Section({ title, id, aside, children }: { title: string; id: string; aside?: ComponentChildren; children: ComponentChildren }): VNode {
  return (
    <section aria-labelledby={id}>
      <div class="section-head">
        <h2 id={id}>{title}</h2>
        {aside}
      </div>
      {children}
    </section>
  );
}

/** Fact is a term and what it is, in a list of facts. */
export function Fact({ term, wide = false, children }: { term: string; wide?: boolean; children: ComponentChildren }): VNode {
  return (
    <div class={wide ? "wide" : undefined}>
      <dt>{term}</dt>
      <dd>{children}</dd>
    </div>
  );
}

/** More shows the next ones of a long list. */
export function More({ left, what, show }: { left: number; what: string; show: () => void }): VNode | null {
  if (left <= 0) return null;
  return <button type="button" class="quiet more" onClick={show}>Show more ({left.toLocaleString("en")} {what})</button>;
}
