// Requests to the daemon beside the stream.
import type { AnyKind, Kinds, Plural } from "./model/kinds.ts";

const base = "/apis/rigbridge.dev/v1alpha1/namespaces/default";

let loginNeeded = () => {};

/** onLogin has f called when the daemon does not know this browser any more. */
export function onLogin(f: () => void): void {
  loginNeeded = f;
}

/** request returns an answer that is a success. Any other one is thrown, as a sentence for people. */
async function request(path: string, init: RequestInit = {}): Promise<Response> {
  let response: Response;
  try {
    response = await fetch(path, { cache: "no-store", credentials: "same-origin", ...init });
  } catch (err) {
    if (err instanceof DOMException && err.name === "AbortError") throw err;
    throw new Error("The daemon does not answer. Try again when it is back.");
  }
  if (response.ok) return response;
  if (response.status === 401) loginNeeded();
  throw new Error(await sentence(response));
}

/** sentence takes the message out of an error's body, whichever of the daemon's three forms it has. */
async function sentence(response: Response): Promise<string> {
  const text = await response.text().catch(() => "");
  try {
    const body = JSON.parse(text) as { message?: string; error?: string | { message?: string } };
    const message = typeof body.error === "string" ? body.error : body.error?.message ?? body.message;
    if (message) return message;
  } catch {
    // not JSON
  }
  return text.slice(0, 300) || `The daemon answered ${response.status}.`;
}

function path(plural: Plural, name: string, sub = ""): string {
  return `${base}/${plural}/${encodeURIComponent(name)}${sub}`;
}

/** find reads an object, or undefined where there is none. A list, because browsers report every 404 as an error. */
export async function find<P extends Plural>(plural: P, name: string): Promise<Kinds[P] | undefined> {
  if (!/^[a-z0-9]([-.a-z0-9]*[a-z0-9])?$/.test(name)) return undefined; // not a name, and it would break the selector
  return (await list(plural, `metadata.name=${name}`, 1))[0];
}

/** list reads objects by a field selector, page by page, at most so many. */
export async function list<P extends Plural>(plural: P, selector: string, most: number): Promise<Kinds[P][]> {
  const found: Kinds[P][] = [];
  for (let token = ""; ; ) {
    const query = new URLSearchParams({ fieldSelector: selector, limit: "500", ...(token ? { continue: token } : {}) });
    const page = (await (await request(`${base}/${plural}?${query}`)).json()) as { items?: Kinds[P][]; metadata?: { continue?: string } };
    found.push(...(page.items ?? []));
    token = page.metadata?.continue ?? "";
    if (token === "" || found.length >= most) return found;
  }
}

async function patch(plural: Plural, name: string, spec: object): Promise<AnyKind> {
  const response = await request(path(plural, name), {
    method: "PATCH",
    headers: { "Content-Type": "application/merge-patch+json" },
    body: JSON.stringify({ spec }),
  });
  return response.json() as Promise<AnyKind>;
}

/** cancel stops an operation, or what a finished one left running. */
export function cancel(operation: string): Promise<AnyKind> {
  return patch("operations", operation, { cancel: true, cancelledBy: "person" });
}

export function acknowledge(handoff: string): Promise<AnyKind> {
  return patch("handoffs", handoff, { acknowledged: true });
}

export function desktopAlerts(project: string, on: boolean): Promise<AnyKind> {
  return patch("projects", project, { notifications: { desktop: on } });
}

/** close closes a workspace: its operations are stopped first. */
export async function close(workspace: string): Promise<void> {
  await request(path("workspaces", workspace), { method: "DELETE" });
}

/** argumentsOf returns what a call was given, or undefined when that is no longer in memory. */
export function argumentsOf(operation: string, signal: AbortSignal): Promise<Record<string, unknown> | undefined> {
  return whileInMemory(path("operations", operation, "/request"), signal);
}

export interface Result {
  text?: string;
  details?: { diff?: string; patch?: string } | null;
  elapsedMillis?: number;
}

/** resultOf returns what a call answered, or undefined when that is no longer in memory. */
export function resultOf(operation: string, signal: AbortSignal): Promise<Result | undefined> {
  return whileInMemory(path("operations", operation, "/result"), signal);
}

async function whileInMemory<T>(where: string, signal: AbortSignal): Promise<T | undefined> {
  const response = await request(`${where}?optional=true`, { signal });
  return response.status === 204 ? undefined : ((await response.json()) as T);
}

/** output opens what a command prints, from the beginning of what is kept to its end; undefined where nothing is kept. */
export async function output(operation: string, signal: AbortSignal): Promise<ReadableStreamDefaultReader<string> | undefined> {
  const response = await request(path("operations", operation, "/log?follow=true&optional=true"), { signal });
  if (response.status === 204 || !response.body) return undefined;
  return response.body.pipeThrough(new TextDecoderStream()).getReader();
}
