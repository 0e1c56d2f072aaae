// Where the page is, as the fragment of its address says.

export type Route =
  | { at: "overview" }
  | { at: "inbox" }
  | { at: "thread" | "project" | "operation" | "handoff"; id: string };

/** parse reads a fragment; what it does not know is the overview. */
export function parse(hash: string): Route {
  const [, key, value] = /^#?([^=]*)=?(.*)$/s.exec(hash)!;
  if (key === "inbox") return { at: "inbox" };
  if ((key === "thread" || key === "project" || key === "operation" || key === "handoff") && value) {
    return { at: key, id: decode(value) };
  }
  return { at: "overview" };
}

/** link is the fragment of a place. */
export function link(at: "overview" | "inbox" | "thread" | "project" | "operation" | "handoff", id = ""): string {
  return id === "" ? `#${at}` : `#${at}=${encodeURIComponent(id)}`;
}

function decode(s: string): string {
  try {
    return decodeURIComponent(s);
  } catch {
    return s;
  }
}
