import assert from "node:assert/strict";
import { test } from "node:test";
import { delivered, due, read, remembered, turn, type AlertState } from "../src/model/alerts.ts";
import type { Handoff } from "../src/model/kinds.ts";

function handoff(name: string, thread = "t", acknowledged = false, at = "2026-01-01T00:00:00Z"): Handoff {
  return { metadata: { name, creationTimestamp: at }, spec: { threadRef: { name: thread }, runRef: { name: "r" }, reason: "Completed", summary: "done", acknowledged } };
}

const projectOf = (h: Handoff) => (h.spec.threadRef.name === "t" ? "p" : "other");
const none: AlertState = { projects: [], delivered: [] };
const names = (hs: Handoff[]) => hs.map((h) => h.metadata.name);

test("only handoffs that come after alerts were turned on are due", () => {
  const old = handoff("old");
  const s = turn(none, "p", true, [old]);
  assert.deepEqual(names(due(s, [old, handoff("new")], projectOf)), ["new"]);
});

test("nothing is due for other projects, for read handoffs, or when alerts are off", () => {
  const s = turn(none, "p", true, []);
  assert.deepEqual(due(s, [handoff("a", "elsewhere"), handoff("b", "t", true)], projectOf), []);
  assert.deepEqual(due(turn(s, "p", false, []), [handoff("c")], projectOf), []);
  assert.deepEqual(due(s, [handoff("d")], () => undefined), []);
});

test("an alert is due once, also in the next tab", () => {
  const s = turn(none, "p", true, []);
  const h = [handoff("b", "t", false, "2026-01-02T00:00:00Z"), handoff("a")];
  const found = due(s, h, projectOf);
  assert.deepEqual(names(found), ["a", "b"]);
  const after = delivered(s, names(found), () => true);
  assert.deepEqual(due(read(JSON.stringify(after)), h, projectOf), []);
});

test("off and on again does not alert what came meanwhile", () => {
  const off = turn(turn(none, "p", true, []), "p", false, []);
  assert.deepEqual(due(turn(off, "p", true, [handoff("meanwhile")]), [handoff("meanwhile")], projectOf), []);
});

test("the last 1,000 and all unread stay remembered", () => {
  const many = Array.from({ length: remembered + 500 }, (_, i) => `h${i}`);
  const s = delivered({ projects: ["p"], delivered: many }, ["last"], (name) => name === "h3");
  assert.equal(s.delivered.length, remembered + 1);
  assert.equal(s.delivered[0], "h3");
  assert.equal(s.delivered.at(-1), "last");
});

for (const broken of [null, "", "{", "[]", "null", '{"projects":3,"delivered":[1,"a"]}']) {
  test(`stored text ${broken} is read`, () => {
    const s = read(broken);
    assert.deepEqual(s.projects, []);
    assert.ok(s.delivered.every((d) => typeof d === "string"));
  });
}
