// What the page shows from: the mirror of the daemon's stream, indexes over it, and what was read beside it. Changes
// reach the components through signals, at most five times a second.
import { batch, computed, signal, type ReadonlySignal, type Signal } from "@preact/signals";
import * as api from "./api.ts";
import { Connection } from "./connection.ts";
import type { AnyKind, Handoff, Kinds, Operation, Plural, Project, Run, Thread, Workspace } from "./model/kinds.ts";
import { Mirror, type Client, type Hello, type Line, type Link, type Part } from "./model/mirror.ts";
import { began, over, time } from "./model/state.ts";

declare const WORKER: string; // the worker's address, by the build

const showEvery = 200; // ms
const showAtLeastEvery = 1000; // ms, where the computer is slow
const share = 5; // one part of the time that passes, at most, is spent on showing changes

export const mirror = new Mirror();

const versions: { [P in Plural]: Signal<number> } = {
  projects: signal(0), threads: signal(0), workspaces: signal(0), operations: signal(0),
  runs: signal(0), handoffs: signal(0), tunnels: signal(0),
};

export const link = signal<Link>(mirror.link);
export const hello = signal<Hello | undefined>(undefined);
export const complete = signal(false);
export const clients = signal<Client[]>([]);
/** updated is when the last change came, in ms since 1970. */
export const updated = signal(0);

/** paused is since when what is shown stands still, in ms since 1970; 0 while it is live. */
export const paused = signal(0);

export function pause(): void {
  paused.value = Date.now();
}

export function resume(): void {
  paused.value = 0;
  show();
}

/** refresh shows what has changed, also while what is shown stands still. */
export function refresh(): void {
  batch(() => pending.forEach(publish));
  pending.clear();
}

/** held gives the objects of a kind and subscribes to their changes. */
function held<P extends Plural>(plural: P): Map<string, Kinds[P]> {
  void versions[plural].value;
  return mirror.objects[plural] as Map<string, Kinds[P]>;
}

export const projects: ReadonlySignal<Project[]> = computed(() => latestFirst(held("projects").values(), lastUsed));
export const threads: ReadonlySignal<Thread[]> = computed(() => latestFirst(held("threads").values(), lastUsed));
export const threadsOfProject = computed(() => group(threads.value, (t) => t.spec.projectRef.name));
export const workspaceOfThread = computed(() => {
  const found = new Map<string, Workspace>();
  for (const w of held("workspaces").values()) if (!w.metadata.deletionTimestamp) found.set(w.spec.threadRef.name, w);
  return found;
});
export const operationsOfThread = computed(() => {
  const workspaces = held("workspaces");
  return group(latestFirst(held("operations").values(), began), (o) => o.spec.threadRef?.name ?? workspaces.get(o.spec.workspaceRef.name)?.spec.threadRef.name ?? "");
});
/** running are the operations that are not over, the oldest first. */
export const running = computed(() => latestFirst([...held("operations").values()].filter((o) => !over(o)), began).reverse());
export const runningOfThread = computed(() => group(running.value, (o) => threadOf(o) ?? ""));
/** handoffs are the newest first. */
export const handoffs: ReadonlySignal<Handoff[]> = computed(() => latestFirst(held("handoffs").values(), created));
export const handoffsOfThread = computed(() => group(handoffs.value, (h) => h.spec.threadRef.name));
export const unread = computed(() => handoffs.value.filter((h) => !h.spec.acknowledged));
export const unreadOfProject = computed(() => {
  const of = held("threads");
  const counts = new Map<string, number>();
  for (const h of unread.value) {
    const project = of.get(h.spec.threadRef.name)?.spec.projectRef.name;
    if (project !== undefined) counts.set(project, (counts.get(project) ?? 0) + 1);
  }
  return counts;
});
export const runsOfThread = computed(() => group(latestFirst(held("runs").values(), runBegan), (r) => r.spec.threadRef.name));
export const tunnels = computed(() => [...held("tunnels").values()]);

export function projectOf(id: string | undefined): Project | undefined {
  return id === undefined ? undefined : held("projects").get(id);
}

export function thread(id: string | undefined): Thread | undefined {
  return id === undefined ? undefined : held("threads").get(id);
}

/** threadOf is the name of the thread that an operation belongs to. */
export function threadOf(o: Operation): string | undefined {
  return o.spec.threadRef?.name ?? held("workspaces").get(o.spec.workspaceRef.name)?.spec.threadRef.name;
}

export function operation(id: string): Operation | undefined {
  return held("operations").get(id);
}

export function handoff(id: string): Handoff | undefined {
  return held("handoffs").get(id);
}

export function descriptionOf(id: string): string | undefined {
  void versions.operations.value;
  return mirror.descriptions.get(id);
}

/** latestFirst sorts by a time, which is read once of each. */
function latestFirst<T>(items: Iterable<T>, when: (item: T) => number): T[] {
  const timed = Array.from(items, (item): [number, T] => [when(item), item]);
  return timed.sort((a, b) => b[0] - a[0]).map(([, item]) => item);
}

function group<T>(items: T[], key: (item: T) => string): Map<string, T[]> {
  const groups = new Map<string, T[]>();
  for (const item of items) {
    const k = key(item);
    const g = groups.get(k);
    if (g) g.push(item);
    else groups.set(k, [item]);
  }
  return groups;
}

export function lastUsed(o: Project | Thread): number {
  return time(o.status?.lastUsedTime ?? o.metadata.creationTimestamp);
}

export function created(o: AnyKind): number {
  return time(o.metadata.creationTimestamp);
}

export function runBegan(r: Run): number {
  return time(r.status?.startTime ?? r.metadata.creationTimestamp);
}

/** Earlier is what a thread did before what the stream shows, read once when somebody looks at it. */
export interface Earlier {
  thread: string;
  state: "loading" | "read" | "failed";
  error?: string;
  operations?: Map<string, Operation>; // undefined until asked for
  runs: Map<string, Run>;
  handoffs: Map<string, Handoff>;
}

export const earlier = signal<Earlier | undefined>(undefined);

const mostEarlier = 1000;

/** look reads the runs and handoffs of a thread, and its operations if they are wanted. */
export async function look(id: string, withOperations: boolean): Promise<void> {
  const before = earlier.value?.thread === id ? earlier.value : undefined;
  const next: Earlier = { thread: id, state: "loading", runs: before?.runs ?? new Map(), handoffs: before?.handoffs ?? new Map(), ...(before?.operations ? { operations: before.operations } : {}) };
  earlier.value = next;
  const selector = `spec.threadRef.name=${id}`;
  try {
    const [runs, found, operations] = await Promise.all([
      api.list("runs", selector, mostEarlier),
      api.list("handoffs", selector, mostEarlier),
      withOperations ? api.list("operations", selector, mostEarlier) : undefined,
    ]);
    if (earlier.value !== next) return; // another thread is looked at
    earlier.value = {
      thread: id,
      state: "read",
      runs: byName(runs),
      handoffs: byName(found),
      ...(operations ? { operations: byName(operations) } : next.operations ? { operations: next.operations } : {}),
    };
  } catch (err) {
    if (earlier.value === next) earlier.value = { ...next, state: "failed", error: (err as Error).message };
  }
}

function byName<T extends AnyKind>(items: T[]): Map<string, T> {
  return new Map(items.map((i) => [i.metadata.name, i]));
}

/** withEarlier adds what was read beside the stream to what the stream shows, which is newer. */
export function withEarlier<P extends "operations" | "runs" | "handoffs">(plural: P, id: string, live: Kinds[P][], when: (o: Kinds[P]) => number): Kinds[P][] {
  const e = earlier.value;
  const read = e?.thread === id ? (e[plural] as Map<string, Kinds[P]> | undefined) : undefined;
  if (!read || read.size === 0) return live;
  const all = new Map(read);
  for (const o of live) all.set(o.metadata.name, o);
  return latestFirst(all.values(), when);
}

// What leaves the stream's view because newer ones came is still shown in the thread that is looked at.
mirror.left = (plural, object) => {
  const e = earlier.value;
  if (!e || (plural !== "operations" && plural !== "runs" && plural !== "handoffs")) return;
  const of = plural === "operations" ? (object as Operation).spec.threadRef?.name : (object as Run | Handoff).spec.threadRef.name;
  (of === e.thread ? (e[plural] as Map<string, AnyKind> | undefined) : undefined)?.set(object.metadata.name, object);
};

const pending = new Set<Part>();
let timer: ReturnType<typeof setTimeout> | undefined;
let shownAt = 0;
let showing = 0; // how long it took the last time, in ms
const listeners = new Set<() => void>();

/** onLines is called after each piece of the stream, before it is shown. */
export function onLines(f: () => void): void {
  listeners.add(f);
}

function take(lines: Line[]): void {
  for (const line of lines) {
    for (const part of mirror.apply(line)) pending.add(part);
  }
  if (pending.delete("login")) location.reload();
  for (const f of listeners) f();
  if (pending.size === 0 || timer !== undefined) return;
  timer = setTimeout(show, Math.max(0, shownAt + Math.min(showAtLeastEvery, Math.max(showEvery, share * showing)) - performance.now()));
}

function show(): void {
  timer = undefined;
  shownAt = performance.now();
  if (!mirror.complete && mirror.link.state !== "offline") {
    link.value = mirror.link; // the first present is shown when it is complete
    return;
  }
  setTimeout(() => (showing = performance.now() - shownAt)); // when all of it is rendered
  if (paused.value === 0) return refresh();
  if (pending.delete("link")) publish("link");
}

function publish(part: Part): void {
  if (part === "link") {
    link.value = mirror.link;
    hello.value = mirror.hello;
    complete.value = mirror.complete;
  } else if (part === "clients") {
    clients.value = mirror.clients;
  } else if (part !== "login") {
    versions[part].value++;
    updated.value = Date.now();
  }
}

/** start connects, through the worker that all tabs share where there is one. check looks whether all is well. */
export function start(): { check: () => void } {
  api.onLogin(() => location.reload());
  if (typeof SharedWorker === "undefined") return alone();
  let port: MessagePort;
  let check = () => port.postMessage("check");
  const open = () => {
    const worker = new SharedWorker(WORKER, { type: "module", name: "rig-bridge" });
    worker.onerror = () => ({ check } = alone()); // it could not be loaded
    port = worker.port;
    port.onmessage = (event: MessageEvent<Line[]>) => take(event.data);
  };
  open();
  addEventListener("pagehide", () => port.postMessage("bye"));
  addEventListener("pageshow", (event) => {
    if (event.persisted) open(); // back from the browser's cache of pages
  });
  return { check: () => check() };
}

function alone(): { check: () => void } {
  const connection = new Connection(take);
  void connection.run();
  return { check: () => connection.check() };
}
