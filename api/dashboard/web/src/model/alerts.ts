// Which handoffs a browser alert is due for. The state is kept in the browser, shared by its tabs: the projects for
// which alerts are on, and the handoffs that were alerted or were there before alerts were turned on.
import type { Handoff } from "./kinds.ts";

/** remembered bounds the handoffs that are kept beside those that are unread. */
export const remembered = 1000;

export interface AlertState {
  projects: string[];
  delivered: string[]; // the latest last
}

/** read takes the state from its stored text; a broken one is an empty one. */
export function read(text: string | null): AlertState {
  try {
    const v = JSON.parse(text ?? "") as Partial<AlertState>;
    return { projects: strings(v.projects), delivered: strings(v.delivered) };
  } catch {
    return { projects: [], delivered: [] };
  }
}

function strings(v: unknown): string[] {
  return Array.isArray(v) ? v.filter((s): s is string => typeof s === "string") : [];
}

/** turn turns a project's alerts on or off. What waits already when they are turned on is not alerted. */
export function turn(s: AlertState, project: string, on: boolean, handoffsOfProject: Handoff[]): AlertState {
  const projects = s.projects.filter((p) => p !== project);
  if (!on) return { ...s, projects };
  return { projects: [...projects, project], delivered: union(s.delivered, handoffsOfProject.map((h) => h.metadata.name)) };
}

/** due are the handoffs to alert now, the oldest first: unread, of a project whose alerts are on, and not alerted yet. */
export function due(s: AlertState, handoffs: Iterable<Handoff>, projectOf: (h: Handoff) => string | undefined): Handoff[] {
  const on = new Set(s.projects);
  if (on.size === 0) return [];
  const done = new Set(s.delivered);
  const found: Handoff[] = [];
  for (const h of handoffs) {
    const project = projectOf(h);
    if (!h.spec.acknowledged && project !== undefined && on.has(project) && !done.has(h.metadata.name)) found.push(h);
  }
  return found.sort((a, b) => (a.metadata.creationTimestamp ?? "").localeCompare(b.metadata.creationTimestamp ?? ""));
}

/** delivered notes alerts. All unread handoffs stay remembered, of the others the last 1,000. */
export function delivered(s: AlertState, names: string[], unread: (name: string) => boolean): AlertState {
  const all = union(s.delivered, names);
  const from = all.length - remembered;
  return { ...s, delivered: all.filter((name, i) => i >= from || unread(name)) };
}

function union(before: string[], more: string[]): string[] {
  const added = new Set(more);
  return [...before.filter((name) => !added.has(name)), ...added];
}
