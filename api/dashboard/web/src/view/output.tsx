// What a command prints, as it prints it. The text goes into the page by text nodes, a frame's worth at a time, and
// only the last lines stay: the page holds a bounded part of an endless output.
import { signal } from "@preact/signals";
import { useEffect, useRef, useState } from "preact/hooks";
import type { VNode } from "preact";
import * as api from "../api.ts";
import { classes, Reader, type Line } from "../model/ansi.ts";
import * as followed from "../model/followed.ts";
import { paused } from "../world.ts";

const maxLine = 4000; // characters
const frame = 100; // ms
const retry = 1000; // ms
const perFrame = 64 << 10; // characters read in a frame; the daemon leaves out what the reader is too slow for

const following = signal(followed.none);

/** Output shows an operation's output: while it runs as it comes, afterwards what the daemon still has in memory. */
export function Output({ id, running, lines, label }: { id: string; running: boolean; lines: number; label: string }): VNode {
  const box = useRef<HTMLDivElement>(null);
  const [note, setNote] = useState("");
  const [visible, setVisible] = useState(!document.hidden);
  useEffect(() => {
    const changed = () => setVisible(!document.hidden);
    document.addEventListener("visibilitychange", changed);
    return () => document.removeEventListener("visibilitychange", changed);
  }, []);
  useEffect(() => {
    if (!running) return;
    following.value = followed.come(following.value, id);
    return () => void (following.value = followed.leave(following.value, id));
  }, [id, running]);
  const mine = following.value.followed.includes(id);
  const wanted = !running || (mine && visible);
  const runs = useRef(running);
  runs.current = running;
  useEffect(() => {
    if (!wanted) return;
    const end = new AbortController();
    setNote("");
    void read(id, box.current!, lines, () => runs.current, end.signal).then((said) => {
      if (!end.signal.aborted) setNote(said);
    });
    return () => end.abort();
  }, [id, wanted, lines]);
  return (
    <div class="output-frame">
      <div ref={box} class="output" tabIndex={0} role="region" aria-label={label} dir="ltr" />
      {running && !mine && <button type="button" class="quiet" onClick={() => (following.value = followed.choose(following.value, id))}>Follow this output</button>}
      {note && <p class="hint">{note}</p>}
    </div>
  );
}

/** read shows an output to its end and returns what there is to say about it. What breaks off while the command runs is read again. */
async function read(id: string, box: HTMLElement, lines: number, running: () => boolean, signal: AbortSignal): Promise<string> {
  for (;;) {
    const screen = new Screen(box, lines, signal);
    let said = "";
    try {
      if (!(await pump(id, screen, signal))) said = "The output is not in memory.";
      else if (screen.empty) said = "No output.";
    } catch (err) {
      said = (err as Error).message;
    }
    if (signal.aborted || !running()) return said;
    await sleep(retry);
    if (signal.aborted || !running()) return said;
  }
}

/** pump reads an output to its end; false if there is none. */
async function pump(id: string, screen: Screen, signal: AbortSignal): Promise<boolean> {
  const stream = await api.output(id, signal);
  if (!stream) return false;
  const reader = new Reader(maxLine);
  for (let taken = 0; ; ) {
    const { done, value } = await stream.read();
    if (done) return true;
    screen.add(reader.write(value), reader.current());
    taken += value.length;
    if (taken >= perFrame) {
      taken = 0;
      await sleep(frame);
    }
  }
}

function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

/** Screen keeps the last lines of an output in an element. */
class Screen {
  empty = true;
  private waiting: Line[] = [];
  private last: Line | undefined; // the unfinished one
  private lastElement: Element | undefined;
  private timer: ReturnType<typeof setTimeout> | undefined;
  private shownAt = 0;
  private dropped = 0;
  private mark: Element | undefined;

  constructor(private readonly box: HTMLElement, private readonly max: number, private readonly signal: AbortSignal) {
    box.replaceChildren();
  }

  add(done: Line[], current: Line): void {
    this.empty &&= done.length === 0 && current.length === 0;
    this.waiting.push(...done);
    const over = this.waiting.length - this.max;
    if (over > 0) {
      this.waiting.splice(0, over);
      this.dropped += over;
    }
    this.last = current;
    this.timer ??= setTimeout(() => this.show(), Math.max(0, this.shownAt + frame - performance.now()));
  }

  private show(): void {
    this.timer = undefined;
    if (this.signal.aborted) return; // another one has the element
    if (paused.value > 0) {
      this.timer = setTimeout(() => this.show(), frame);
      return;
    }
    this.shownAt = performance.now();
    const atEnd = this.box.scrollHeight - this.box.scrollTop - this.box.clientHeight < 8;
    this.lastElement?.remove();
    const more = document.createDocumentFragment();
    for (const line of this.waiting) more.append(element(line));
    this.waiting = [];
    this.lastElement = this.last && this.last.length > 0 ? element(this.last) : undefined;
    if (this.lastElement) more.append(this.lastElement);
    this.box.append(more);
    this.trim();
    if (atEnd) this.box.scrollTop = this.box.scrollHeight;
  }

  private trim(): void {
    this.mark?.remove();
    while (this.box.childElementCount > this.max) {
      this.box.firstElementChild!.remove();
      this.dropped++;
    }
    if (this.dropped === 0) return;
    this.mark = document.createElement("div");
    this.mark.className = "mark";
    this.mark.textContent = `${this.dropped.toLocaleString("en")} earlier lines are not shown`;
    this.box.prepend(this.mark);
  }
}

/** element is a line as an element: spans of text with classes. */
function element(line: Line): Element {
  const el = document.createElement("div");
  for (const span of line.spans) {
    const names = classes(span.style);
    if (names === "") {
      el.append(span.text);
      continue;
    }
    const s = document.createElement("span");
    s.className = names;
    s.textContent = span.text;
    el.append(s);
  }
  if (line.cut > 0) {
    const s = document.createElement("span");
    s.className = "mark";
    s.textContent = ` … ${line.cut.toLocaleString("en")} more characters in this line`;
    el.append(s);
  }
  if (!el.hasChildNodes()) el.append("\n");
  return el;
}
