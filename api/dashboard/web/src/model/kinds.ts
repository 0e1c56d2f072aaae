// The kinds of rigbridge.dev/v1alpha1, as far as the page reads them. Everything optional may be missing: the page
// may be older or newer than the daemon.

export interface Ref {
  name: string;
}

export interface Meta {
  name: string;
  uid?: string;
  resourceVersion?: string;
  creationTimestamp?: string;
  deletionTimestamp?: string;
}

export interface Condition {
  type: string;
  status: "True" | "False" | "Unknown";
  reason?: string;
  message?: string;
  lastTransitionTime?: string;
}

export interface Process {
  pid: number;
  beginTime?: string;
  command?: string;
}

export interface Project {
  metadata: Meta;
  spec: { root: string; identity: string; displayName?: string; notifications?: { desktop?: boolean } };
  status?: { lastUsedTime?: string; threads?: number; unreadHandoffs?: number };
}

export type ThreadState = "Idle" | "Working" | "AwaitingHandoff" | "Interrupted" | "YourTurn";

export interface Thread {
  metadata: Meta;
  spec: { projectRef: Ref; cwd: string; title?: string };
  status?: { lastUsedTime?: string; currentRunRef?: Ref; runs?: Ref[]; state?: ThreadState };
}

export interface Workspace {
  metadata: Meta;
  spec: { threadRef: Ref; cwd: string };
  status?: { conditions?: Condition[]; phase?: string; activeOperations?: number; lastUsedTime?: string; account?: string; host?: string };
}

export interface Operation {
  metadata: Meta;
  spec: {
    workspaceRef: Ref;
    threadRef?: Ref;
    tool: string;
    requestKey?: string;
    paths?: string[];
    expectedRevision?: string;
    timeoutSeconds?: number;
    cancel?: boolean;
    cancelledBy?: string;
  };
  status?: {
    conditions?: Condition[];
    phase?: string;
    code?: string;
    attempt?: { id: string; number: number; path?: string; process?: Process };
    startTime?: string;
    completionTime?: string;
    elapsedMilliseconds?: number;
    cwd?: string;
    exitCode?: number;
    signal?: string;
    revision?: string;
    changedPaths?: string[];
    fullOutputPath?: string;
    effectsMayHaveOccurred?: boolean;
    cancelledBy?: string;
    leftovers?: Process[];
    runRef?: Ref;
    handoffRef?: Ref;
  };
}

export interface Run {
  metadata: Meta;
  spec: { threadRef: Ref; title?: string };
  status?: { phase?: string; startTime?: string; completionTime?: string; summary?: string; handoffRef?: Ref };
}

export interface Handoff {
  metadata: Meta;
  spec: { threadRef: Ref; runRef: Ref; reason: string; summary: string; acknowledged?: boolean };
  status?: { readTime?: string; delivery?: { phase?: string; error?: string } };
}

export interface Tunnel {
  metadata: Meta;
  spec: { tunnelID: string; suspended?: boolean };
  status?: { conditions?: Condition[]; phase?: string; restarts?: number; lastPollTime?: string; process?: Process };
}

/** Kinds maps the plural of each kind to its shape. */
export interface Kinds {
  projects: Project;
  threads: Thread;
  workspaces: Workspace;
  operations: Operation;
  runs: Run;
  handoffs: Handoff;
  tunnels: Tunnel;
}

export type Plural = keyof Kinds;
export type AnyKind = Kinds[Plural];
