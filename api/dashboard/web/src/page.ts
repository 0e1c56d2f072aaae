// What the page itself knows: where it is, what it asks, what it says.
import { signal } from "@preact/signals";
import * as api from "./api.ts";
import { parse, type Route } from "./model/route.ts";
import * as world from "./world.ts";

export const route = signal<Route>(parse(location.hash));
addEventListener("hashchange", () => (route.value = parse(location.hash)));

/** filter is the text by which projects and threads are looked for. */
export const filter = signal("");

/** Question is asked before something that cannot be taken back. */
export interface Question {
  title: string;
  text: string;
  subject?: string;
  yes: string;
  act: () => Promise<unknown>;
  /** moot says why there is nothing to do any more, or nothing. */
  moot: () => string;
}

export const question = signal<Question | undefined>(undefined);
export const helping = signal(false);

/** Notice is what the page says for a moment. */
export interface Notice {
  text: string;
  bad: boolean;
}

export const notice = signal<Notice | undefined>(undefined);
/** spoken is what a screen reader is told. */
export const spoken = signal("");

const actedOn = 500; // ms until the stream tells what came of it, mostly
let timer: ReturnType<typeof setTimeout> | undefined;

export function say(text: string, bad = false): void {
  notice.value = { text, bad };
  clearTimeout(timer);
  timer = setTimeout(() => (notice.value = undefined), bad ? 12_000 : 4000);
}

/** attempt does something and tells if it failed. */
export async function attempt(what: () => Promise<unknown>, done = ""): Promise<boolean> {
  try {
    await what();
    if (world.paused.value > 0) setTimeout(world.refresh, actedOn); // what the person did is seen all the same
    if (done !== "") say(done);
    return true;
  } catch (err) {
    say((err as Error).message, true);
    return false;
  }
}

export function markRead(names: string[]): Promise<boolean> {
  return attempt(async () => {
    for (const name of names) await api.acknowledge(name);
  });
}

export async function copy(text: string, what: string): Promise<void> {
  await attempt(() => navigator.clipboard.writeText(text), `${what} copied`);
}
