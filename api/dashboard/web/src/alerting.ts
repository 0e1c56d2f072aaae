// Browser alerts: one for each handoff, from one of the tabs. The tab that holds the lock alerts, until it closes; what
// it has alerted is kept in the browser, for the tab after it.
import { computed, signal } from "@preact/signals";
import * as alerts from "./model/alerts.ts";
import { oneLine } from "./model/printable.ts";
import { link } from "./model/route.ts";
import { projectName, reasonText, threadName } from "./model/state.ts";
import { say } from "./page.ts";
import * as world from "./world.ts";

const key = "rig-bridge-alerts";

export const state = signal(load());
const permission = signal(typeof Notification === "undefined" ? "missing" : Notification.permission);

/** unavailable says why this browser cannot alert, or nothing. */
export const unavailable = computed(() => {
  if (permission.value === "missing") return "This browser has no notifications.";
  if (!("locks" in navigator)) return "This browser cannot keep its tabs from alerting twice.";
  if (permission.value === "denied") return "This browser was told not to show notifications of this page; its settings can change that.";
  return "";
});

function load(): alerts.AlertState {
  try {
    return alerts.read(localStorage.getItem(key));
  } catch {
    return alerts.read(null);
  }
}

function save(s: alerts.AlertState): boolean {
  try {
    localStorage.setItem(key, JSON.stringify(s));
    state.value = s;
    return true;
  } catch {
    return false; // no storage: an alert could not be remembered, so none is shown
  }
}

/** turn switches a project's alerts. The browser asks the person first. */
export async function turn(project: string, on: boolean): Promise<void> {
  if (on && permission.value !== "granted") {
    permission.value = await Notification.requestPermission();
    if (permission.value !== "granted") {
      say("The browser does not allow notifications of this page.", true);
      return;
    }
  }
  const there = [...world.mirror.objects.handoffs.values()].filter((h) => projectOf(h) === project);
  if (!save(alerts.turn(load(), project, on, there))) say("This browser does not let the page remember anything, so it cannot alert.", true);
}

function projectOf(h: { spec: { threadRef: { name: string } } }): string | undefined {
  return world.mirror.objects.threads.get(h.spec.threadRef.name)?.spec.projectRef.name;
}

let leading = false;

/** start waits for its turn as the tab that alerts. */
export function start(): void {
  addEventListener("storage", (e) => {
    if (e.key === key) state.value = load();
  });
  if (!("locks" in navigator)) return;
  void navigator.locks.request(key, () => {
    leading = true;
    alert();
    return new Promise<never>(() => {}); // until the tab closes
  });
  world.onLines(alert);
}

/** alert shows what is due. It is noted first: an alert may be lost with the browser, but never comes twice. */
function alert(): void {
  if (!leading || !world.mirror.complete || permission.value !== "granted") return;
  const before = load();
  const { handoffs } = world.mirror.objects;
  const due = alerts.due(before, handoffs.values(), projectOf);
  if (due.length === 0) return;
  const unread = (name: string) => {
    const h = handoffs.get(name);
    return h !== undefined && !h.spec.acknowledged;
  };
  if (!save(alerts.delivered(before, due.map((h) => h.metadata.name), unread))) return;
  for (const h of due) {
    const thread = world.mirror.objects.threads.get(h.spec.threadRef.name);
    const project = world.mirror.objects.projects.get(projectOf(h) ?? "");
    const n = new Notification(`${project ? oneLine(projectName(project), 60) : "Rig Bridge"} · Your turn`, {
      body: `${thread ? oneLine(threadName(thread), 80) : ""} (${reasonText(h.spec.reason)}): ${oneLine(h.spec.summary, 300)}`,
      tag: h.metadata.name,
      icon: "/assets/icon.svg",
    });
    n.onclick = () => {
      focus();
      location.hash = link("handoff", h.metadata.name);
      n.close();
    };
  }
}
