import assert from "node:assert/strict";
import { test } from "node:test";
import { diffLines } from "../src/model/diff.ts";
import type { Condition, Handoff, Operation, Thread } from "../src/model/kinds.ts";
import { bounded, oneLine, printable, short } from "../src/model/printable.ts";
import { link, parse } from "../src/model/route.ts";
import { ago, deliveryText, describe, duration, elapsed, outcome, threadLabel, time, took, words } from "../src/model/state.ts";

function table<T, R>(name: string, f: (input: T) => R, rows: [T, R][]): void {
  for (const [input, want] of rows) test(`${name}: ${JSON.stringify(input)}`, () => assert.deepEqual(f(input), want));
}

const handoff = (reason: string, acknowledged = false): Handoff => ({ metadata: { name: "h" }, spec: { threadRef: { name: "t" }, runRef: { name: "r" }, reason, summary: "", acknowledged } });

table<[Thread["status"], Handoff?], string>(
  "thread state",
  ([status, latest]) => threadLabel({ metadata: { name: "t" }, spec: { projectRef: { name: "p" }, cwd: "/" }, ...(status ? { status } : {}) }, latest).text,
  [
    [[undefined], "Idle · no work reported"],
    [[{ state: "Idle" }], "Idle · no work reported"],
    [[{ state: "Working" }], "Working"],
    [[{ state: "AwaitingHandoff" }], "Idle · awaiting handoff"],
    [[{ state: "Interrupted" }], "Interrupted · status unknown"],
    [[{ state: "YourTurn" }, handoff("NeedsInput")], "Your turn · needs input"],
    [[{ state: "YourTurn" }, handoff("Completed", true)], "Your turn · completed"],
    [[{ state: "YourTurn" }, handoff("SomethingNew")], "Your turn · SomethingNew"],
    [[{ state: "YourTurn" }], "Your turn"],
  ],
);

test("only an unread handoff calls", () => {
  const t: Thread = { metadata: { name: "t" }, spec: { projectRef: { name: "p" }, cwd: "/" }, status: { state: "YourTurn" } };
  assert.equal(threadLabel(t, handoff("Failed")).tone, "call");
  assert.equal(threadLabel(t, handoff("Failed", true)).tone, "calm");
});

function op(c: Partial<Condition> | undefined, status: Operation["status"] = {}, spec: Partial<Operation["spec"]> = {}): Operation {
  const conditions = c ? [{ type: "Succeeded", status: "False" as const, ...c }] : [];
  return { metadata: { name: "o" }, spec: { workspaceRef: { name: "w" }, tool: "bash", ...spec }, status: { conditions, ...status } };
}

table<Operation, string>("outcome", (o) => `${outcome(o).text} ${outcome(o).tone}`, [
  [op(undefined), "Waiting calm"],
  [op({ status: "Unknown", reason: "Pending" }), "Waiting calm"],
  [op({ status: "Unknown", reason: "Running" }), "Running busy"],
  [op({ status: "Unknown", reason: "Running" }, {}, { cancel: true }), "Stopping warn"],
  [op({ status: "True", reason: "Succeeded" }), "Succeeded good"],
  [op({ status: "True", reason: "RecoveredAfterCrash" }), "Succeeded · found after a crash good"],
  [op({ reason: "OutcomeUncertain" }), "Outcome uncertain warn"],
  [op({ reason: "Cancelled" }, { exitCode: 143 }), "Cancelled calm"],
  [op({ reason: "ExitedNonZero" }, { exitCode: 3 }), "Exit 3 bad"],
  [op({ reason: "KilledBySignal" }, { signal: "SIGSEGV" }), "Killed by SIGSEGV bad"],
  [op({ reason: "RevisionConflict" }), "Revision conflict bad"],
  [op({ reason: "TimedOut" }), "Timed out bad"],
]);

table<[Operation, Record<string, unknown>?], string>("description", ([o, request]) => describe(o, request), [
  [[op(undefined), { command: "make" }], "make"],
  [[op(undefined, {}, { tool: "grep", paths: ["/src"] }), { pattern: "a\"b" }], 'grep "a\\"b" /src'],
  [[op(undefined, {}, { tool: "edit", paths: ["/a"] })], "edit /a"],
  [[op(undefined, {}, { tool: "ls" }), { path: "sub" }], "ls sub"],
  [[op(undefined, { changedPaths: ["/b"] }, { tool: "write" })], "write /b"],
]);

test("how long a call took is never negative", () => {
  assert.equal(took(op(undefined, { startTime: "2026-01-01T00:00:01.500000Z", completionTime: "2026-01-01T00:00:02.750000Z" })), 1250);
  assert.equal(took(op(undefined, { startTime: "2026-01-01T00:00:02Z", completionTime: "2026-01-01T00:00:01Z" })), 0);
  assert.equal(took(op(undefined)), undefined);
});

table("elapsed", elapsed, [[-5, "0s"], [59_999, "59s"], [60_000, "1m 00s"], [3_599_000, "59m 59s"], [3_600_000, "1h 00m"], [90_061_000, "25h 01m"]]);
table("duration", duration, [[0, "0 ms"], [999, "999 ms"], [1500, "1.5 s"], [59_940, "59.9 s"], [61_000, "1m 01s"]]);
table("ago", ago, [[-1, "just now"], [4999, "just now"], [5000, "5s ago"], [61_000, "1m ago"], [7_200_000, "2h ago"], [200_000_000, "2d ago"]]);
table("time", time, [[undefined, 0], ["nonsense", 0], ["1970-01-01T00:00:01.000000Z", 1000]]);
table("words", words, [["RevisionConflict", "Revision conflict"], ["Failed", "Failed"], ["", ""]]);
table("delivery", (phase: string) => deliveryText({ ...handoff("Completed"), status: { delivery: { phase, error: "no bus" } } }), [
  ["Disabled", ""], ["Pending", "Desktop alert on its way"], ["Sent", "Desktop alert sent"], ["Failed", "Desktop alert failed: no bus"], ["Unknown", "Desktop alert: not known whether it was sent"],
]);

table("printable", printable, [
  ["plain ü\t\n", "plain ü\t\n"],
  ["a\r\nb", "a\nb"],
  ["a\rb\x1b[31m\0", "a\u240db\u241b[31m\u2400"],
  ["\u202egpj.exe", "\u27e8U+202E\u27e9gpj.exe"],
  ["\u{1F600}\udead", "\u{1F600}\u27e8U+DEAD\u27e9"],
  ["\u{E0041}", "\u27e8U+E0041\u27e9"],
]);
table("oneLine", (s: string) => oneLine(s, 5), [["abc", "abc"], ["  abc\n", "abc"], ["a\nb", "a …"], ["abcdefg", "abcde …"], ["abcd\u{1F600}x", "abcd …"], ["", ""]]);
test("a long text says how much is missing", () => assert.equal(bounded("abcdef", 4), "abcd… (2 more characters)"));
table("short", short, [["0123456789ab", "01234567"], ["op-0123456789abcdef", "op-01234567"]]);

table("route", parse, [
  ["", { at: "overview" }],
  ["#overview", { at: "overview" }],
  ["#inbox", { at: "inbox" }],
  ["#thread=a%20b", { at: "thread", id: "a b" }],
  ["#operation=op-1", { at: "operation", id: "op-1" }],
  ["#handoff=h", { at: "handoff", id: "h" }],
  ["#project=%E0%A4%A", { at: "project", id: "%E0%A4%A" }],
  ["#thread=", { at: "overview" }],
  ["#constructor=x", { at: "overview" }],
]);
test("links lead where they say", () => {
  for (const id of ["a", "a b", "#=%&", "<b>"]) assert.deepEqual(parse(link("thread", id)), { at: "thread", id });
});

test("a diff by lines: signs before the first hunk are headers, inside of it changes", () => {
  const { lines, cut } = diffLines("--- a\n+++ b\n@@ -1,2 +1,2 @@\n same\n--- gone\n+++ new\n");
  assert.deepEqual(lines.map((l) => l.kind), ["file", "file", "hunk", "same", "del", "add"]);
  assert.equal(cut, 0);
  assert.equal(diffLines("@@\n" + "+x\n".repeat(50), 10).cut, 41);
});
