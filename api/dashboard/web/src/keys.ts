// Keys. Those of one letter can be turned off, for people who speak to their computer.
import { effect, signal } from "@preact/signals";
import { link } from "./model/route.ts";
import { filter, helping, question } from "./page.ts";
import * as world from "./world.ts";

const key = "rig-bridge-shortcuts";

export const shortcuts = signal(stored() !== "off");
effect(() => {
  try {
    localStorage.setItem(key, shortcuts.value ? "on" : "off");
  } catch {
    // no storage: it holds until the page is closed
  }
});

function stored(): string | null {
  try {
    return localStorage.getItem(key);
  } catch {
    return null;
  }
}

/** listen takes keys that are pressed anywhere. */
export function listen(): void {
  addEventListener("keydown", (e) => {
    if (e.ctrlKey || e.metaKey || e.altKey || e.isComposing || question.value || helping.value) return;
    const at = e.target instanceof HTMLElement ? e.target : document.body;
    const typing = at.matches("input, textarea, select");
    if (e.key === "Escape" && at.id === "filter") filter.value = "";
    else if ((e.key === "ArrowDown" || e.key === "ArrowUp") && at.closest(".side")) step(at, e.key === "ArrowDown" ? 1 : -1);
    else if (!typing && shortcuts.value && letter(e.key)) return e.preventDefault();
    else return;
    e.preventDefault();
  });
}

function letter(k: string): boolean {
  switch (k) {
    case "/":
      document.getElementById("filter")?.focus();
      return true;
    case "j":
    case "k":
      return neighbour(k === "j" ? 1 : -1);
    case "o":
      location.hash = link("overview");
      return true;
    case "i":
      location.hash = link("inbox");
      return true;
    case "p":
      world.paused.value > 0 ? world.resume() : world.pause();
      return true;
    case "?":
      helping.value = true;
      return true;
  }
  return false;
}

/** step moves the focus through the list of threads. */
function step(from: HTMLElement, by: number): void {
  const stops = [...document.querySelectorAll<HTMLElement>(".side a, .side input")].filter((el) => el.offsetParent !== null);
  const i = stops.indexOf(from);
  stops[i < 0 ? 0 : Math.min(stops.length - 1, Math.max(0, i + by))]?.focus();
}

/** neighbour opens the thread beside the one that is shown. */
function neighbour(by: number): boolean {
  const links = [...document.querySelectorAll<HTMLAnchorElement>(".side a.thread")];
  const i = links.findIndex((a) => a.getAttribute("aria-current") === "page");
  const next = links[i < 0 ? 0 : i + by];
  if (next) location.hash = next.hash;
  return true;
}
