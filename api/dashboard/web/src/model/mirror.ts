// What the daemon's stream tells, kept as it stands now. The worker keeps one to tell new tabs the present, each tab
// keeps one to show.
import type { AnyKind, Kinds, Plural } from "./kinds.ts";

export interface Client {
  name?: string;
  version?: string;
  userAgent?: string;
  lastTime?: number;
  lastMethod?: string;
  lastTool?: string;
  requests?: number;
}

export interface Hello {
  type: "HELLO";
  version?: string;
  startedAt?: number;
  now?: number;
  account?: string;
  host?: string;
  home?: string;
}

/** Line is a line of the stream, or what the reader of the stream adds: that it lost the daemon, or needs a login. */
export type Line =
  | Hello
  | { type: "MODIFIED"; object: AnyKind & { kind: string }; description?: string }
  | { type: "DELETED"; object: { kind: string; metadata: { name: string; uid?: string } } }
  | { type: "SYNCED" }
  | { type: "CLIENTS"; clients: Client[] }
  | { type: "HEARTBEAT"; now?: number }
  | { type: "OFFLINE"; since: number }
  | { type: "LOGIN" };

const plurals: Record<string, Plural> = {
  Project: "projects",
  Thread: "threads",
  Workspace: "workspaces",
  Operation: "operations",
  Run: "runs",
  Handoff: "handoffs",
  Tunnel: "tunnels",
};

/** Part is what a line changed. */
export type Part = Plural | "link" | "clients" | "login";

/** Link is how it stands with the daemon. since is when it was last heard, in ms since 1970. */
export type Link = { state: "connecting" } | { state: "loading" } | { state: "live" } | { state: "offline"; since: number };

type Collections = { [P in Plural]: Map<string, Kinds[P]> };

export class Mirror {
  readonly objects: Collections = {
    projects: new Map(), threads: new Map(), workspaces: new Map(), operations: new Map(),
    runs: new Map(), handoffs: new Map(), tunnels: new Map(),
  };
  readonly descriptions = new Map<string, string>();
  hello: Hello | undefined;
  clients: Client[] = [];
  link: Link = { state: "connecting" };
  /** Whether the whole present was told once. What is shown while it is told again may be old, but is complete. */
  complete = false;
  /** left is called with each object that is said to leave. */
  left: (plural: Plural, object: AnyKind) => void = () => {};

  private told: Set<string> | undefined; // what the present has named so far, while it is told

  /** apply takes a line and returns what it changed. */
  apply(line: Line): Part[] {
    switch (line.type) {
      case "HELLO":
        this.hello = line;
        this.told = new Set();
        this.link = { state: "loading" };
        return ["link"];
      case "MODIFIED":
        return this.set(line.object, line.description);
      case "DELETED":
        return this.remove(line.object);
      case "SYNCED":
        return this.settle();
      case "CLIENTS":
        this.clients = line.clients ?? [];
        return ["clients"];
      case "OFFLINE":
        this.told = undefined;
        this.link = { state: "offline", since: line.since };
        return ["link"];
      case "LOGIN":
        return ["login"];
      default:
        return []; // a heartbeat, or what a newer daemon says
    }
  }

  /** replay returns lines that tell the present. */
  replay(): Line[] {
    const lines: Line[] = [];
    if (this.hello) {
      lines.push(this.hello);
      for (const [kind, plural] of Object.entries(plurals)) {
        for (const [name, object] of this.objects[plural]) {
          const description = plural === "operations" ? this.descriptions.get(name) : undefined;
          lines.push({ type: "MODIFIED", object: { ...object, kind }, ...(description === undefined ? {} : { description }) });
        }
      }
      lines.push({ type: "CLIENTS", clients: this.clients });
      if (this.complete) lines.push({ type: "SYNCED" });
      if (this.told) lines.push(this.hello, ...lines.filter((l) => l.type === "MODIFIED" && this.told!.has(key(plurals[l.object.kind]!, l.object.metadata.name))));
    }
    if (this.link.state === "offline") lines.push({ type: "OFFLINE", since: this.link.since });
    return lines;
  }

  private set(object: AnyKind & { kind: string }, description: string | undefined): Part[] {
    const plural = plurals[object.kind];
    const name = object.metadata?.name;
    if (plural === undefined || typeof name !== "string") return [];
    this.told?.add(key(plural, name));
    (this.objects[plural] as Map<string, AnyKind>).set(name, object);
    if (plural === "operations" && description !== undefined) this.descriptions.set(name, description);
    return [plural];
  }

  private remove(object: { kind: string; metadata: { name: string; uid?: string } }): Part[] {
    const plural = plurals[object.kind];
    if (plural === undefined) return [];
    const { name, uid } = object.metadata;
    const held = this.objects[plural].get(name);
    if (!held || (uid !== undefined && held.metadata.uid !== undefined && uid !== held.metadata.uid)) return [];
    this.left(plural, held);
    this.drop(plural, name);
    return [plural];
  }

  private drop(plural: Plural, name: string): void {
    this.objects[plural].delete(name);
    if (plural === "operations") this.descriptions.delete(name);
  }

  /** settle ends the present: what it did not name is gone. */
  private settle(): Part[] {
    const changed: Part[] = ["link"];
    if (this.told) {
      for (const plural of Object.values(plurals)) {
        const gone = [...this.objects[plural].keys()].filter((name) => !this.told!.has(key(plural, name)));
        for (const name of gone) this.drop(plural, name);
        if (gone.length > 0) changed.push(plural);
      }
    }
    this.told = undefined;
    this.complete = true;
    this.link = { state: "live" };
    return changed;
  }
}

function key(plural: Plural, name: string): string {
  return `${plural}/${name}`;
}
