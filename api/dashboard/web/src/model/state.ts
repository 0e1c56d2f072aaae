// How states and outcomes are called.
import type { Condition, Handoff, Operation, Project, Run, Thread, Tunnel } from "./kinds.ts";
import { oneLine, short } from "./printable.ts";

/** Tone is the colour of a state: every state is told in words as well. */
export type Tone = "busy" | "good" | "bad" | "warn" | "call" | "calm";

export interface Label {
  text: string;
  tone: Tone;
}

const reasons: Record<string, string> = {
  Completed: "completed",
  NeedsInput: "needs input",
  Blocked: "blocked",
  Failed: "failed",
  Cancelled: "cancelled",
};

/** reasonText is a handoff's reason in words; an unknown one is shown as it is. */
export function reasonText(reason: string): string {
  return reasons[reason] ?? reason;
}

/** threadLabel is where a thread stands. latest is its latest handoff, if that is known. */
export function threadLabel(t: Thread, latest: Handoff | undefined): Label {
  switch (t.status?.state) {
    case "Working":
      return { text: "Working", tone: "busy" };
    case "AwaitingHandoff":
      return { text: "Idle · awaiting handoff", tone: "calm" };
    case "Interrupted":
      return { text: "Interrupted · status unknown", tone: "warn" };
    case "YourTurn":
      return { text: latest ? `Your turn · ${reasonText(latest.spec.reason)}` : "Your turn", tone: latest && !latest.spec.acknowledged ? "call" : "calm" };
    default:
      return { text: "Idle · no work reported", tone: "calm" };
  }
}

/** runLabel is how a run ended, or that it goes on. */
export function runLabel(r: Run): Label {
  const phase = r.status?.phase ?? "Working";
  switch (phase) {
    case "Working":
      return { text: "Working", tone: "busy" };
    case "Interrupted":
      return { text: "Interrupted · status unknown", tone: "warn" };
    case "Completed":
      return { text: "Completed", tone: "good" };
    case "Failed":
      return { text: "Failed", tone: "bad" };
    default:
      return { text: capital(reasonText(phase)), tone: "calm" };
  }
}

/** handoffTone colours a handoff's reason. */
export function handoffTone(h: Handoff): Tone {
  switch (h.spec.reason) {
    case "Completed":
      return "good";
    case "Failed":
      return "bad";
    case "NeedsInput":
    case "Blocked":
      return "warn";
    default:
      return "calm";
  }
}

/** deliveryText says what became of a handoff's desktop notification; nothing where there was none to send. */
export function deliveryText(h: Handoff): string {
  const d = h.status?.delivery;
  switch (d?.phase) {
    case "Pending":
    case "Sending":
      return "Desktop alert on its way";
    case "Sent":
      return "Desktop alert sent";
    case "Failed":
      return `Desktop alert failed${d.error ? `: ${d.error}` : ""}`;
    case "Unknown":
      return "Desktop alert: not known whether it was sent";
    default:
      return "";
  }
}

/** succeeded is an operation's condition; Unknown while it is active. */
export function succeeded(o: Operation): Condition {
  return o.status?.conditions?.find((c) => c.type === "Succeeded") ?? { type: "Succeeded", status: "Unknown", reason: "Pending" };
}

/** over says whether an operation has its outcome. */
export function over(o: Operation): boolean {
  return succeeded(o).status !== "Unknown";
}

/** outcome is an operation's result in words. */
export function outcome(o: Operation): Label {
  const c = succeeded(o);
  if (c.status === "Unknown") {
    if (o.spec.cancel) return { text: "Stopping", tone: "warn" };
    return c.reason === "Running" ? { text: "Running", tone: "busy" } : { text: "Waiting", tone: "calm" };
  }
  if (c.status === "True") return { text: c.reason === "RecoveredAfterCrash" ? "Succeeded · found after a crash" : "Succeeded", tone: "good" };
  if (c.reason === "OutcomeUncertain") return { text: "Outcome uncertain", tone: "warn" };
  if (c.reason === "Cancelled") return { text: "Cancelled", tone: "calm" };
  if (o.status?.exitCode) return { text: `Exit ${o.status.exitCode}`, tone: "bad" };
  if (o.status?.signal) return { text: `Killed by ${o.status.signal}`, tone: "bad" };
  return { text: words(c.reason ?? "Failed"), tone: "bad" };
}

/** began is when an operation began, in ms since 1970. */
export function began(o: Operation): number {
  return time(o.status?.startTime ?? o.metadata.creationTimestamp);
}

/** took is how long a finished operation ran, in ms: by a clock that nobody can set, if that is known. */
export function took(o: Operation): number | undefined {
  if (over(o) && o.status?.elapsedMilliseconds !== undefined) return o.status.elapsedMilliseconds;
  return o.status?.completionTime === undefined ? undefined : Math.max(0, time(o.status.completionTime) - began(o));
}

/** describe says what a call does: the command, or the tool and what it names. */
export function describe(o: Operation, request: Record<string, unknown> | undefined): string {
  if (request && typeof request["command"] === "string") return request["command"];
  const parts = [o.spec.tool];
  if (request) {
    if (typeof request["pattern"] === "string") parts.push(JSON.stringify(request["pattern"]));
    if (!o.spec.paths?.length && typeof request["path"] === "string") parts.push(request["path"]);
  }
  return [...parts, ...(o.spec.paths ?? o.status?.changedPaths ?? [])].join(" ");
}

/** threadName and projectName are what people call them, printable. */
export function threadName(t: Thread): string {
  return oneLine(t.spec.title || `Thread ${short(t.metadata.name)}`, 200);
}

export function projectName(p: Project): string {
  return oneLine(p.spec.displayName || p.spec.root.split("/").at(-1) || p.spec.root, 255);
}

/** tunnelLabel is where a tunnel stands. */
export function tunnelLabel(t: Tunnel): Label {
  if (t.spec.suspended) return { text: "suspended", tone: "calm" };
  const ready = t.status?.conditions?.find((c) => c.type === "Ready");
  if (ready?.status === "True") return { text: "ready", tone: "good" };
  const phase = t.status?.phase ?? "Pending";
  return { text: phase.toLowerCase(), tone: phase === "Degraded" ? "bad" : "warn" };
}

/** time reads a timestamp, in ms since 1970; 0 where there is none. */
export function time(s: string | undefined): number {
  const t = s === undefined ? NaN : Date.parse(s);
  return Number.isNaN(t) ? 0 : t;
}

/** elapsed is a span for a clock that ticks each second. */
export function elapsed(ms: number): string {
  const s = Math.max(0, Math.floor(ms / 1000));
  if (s < 60) return `${s}s`;
  if (s < 3600) return `${Math.floor(s / 60)}m ${String(s % 60).padStart(2, "0")}s`;
  return `${Math.floor(s / 3600)}h ${String(Math.floor(s / 60) % 60).padStart(2, "0")}m`;
}

/** duration is a finished span. */
export function duration(ms: number): string {
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 60_000) return `${(ms / 1000).toFixed(1)} s`;
  return elapsed(ms);
}

/** ago is how long something lies back, in its largest unit. */
export function ago(ms: number): string {
  const s = Math.max(0, Math.floor(ms / 1000));
  if (s < 5) return "just now";
  if (s < 60) return `${s}s ago`;
  if (s < 3600) return `${Math.floor(s / 60)}m ago`;
  if (s < 86_400) return `${Math.floor(s / 3600)}h ago`;
  return `${Math.floor(s / 86_400)}d ago`;
}

/** count is a number with its noun. */
export function count(n: number, what: string): string {
  return `${n.toLocaleString("en")} ${what}${n === 1 ? "" : "s"}`;
}

/** words turns RevisionConflict into Revision conflict. */
export function words(reason: string): string {
  return capital(reason.replace(/([a-z])([A-Z])/g, (_, a: string, b: string) => `${a} ${b.toLowerCase()}`));
}

function capital(s: string): string {
  return s.slice(0, 1).toUpperCase() + s.slice(1);
}
