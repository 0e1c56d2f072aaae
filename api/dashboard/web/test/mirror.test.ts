import assert from "node:assert/strict";
import { test } from "node:test";
import { Mirror, type Line } from "../src/model/mirror.ts";

function thread(name: string, title: string, uid = `uid-${name}`): Line {
  return { type: "MODIFIED", object: { kind: "Thread", metadata: { name, uid }, spec: { projectRef: { name: "p" }, cwd: "/", title } } };
}

function operation(name: string, description?: string): Line {
  const line: Line = { type: "MODIFIED", object: { kind: "Operation", metadata: { name, uid: `uid-${name}` }, spec: { workspaceRef: { name: "w" }, tool: "bash" } } };
  return description === undefined ? line : { ...line, description };
}

function told(lines: Line[], into = new Mirror()): Mirror {
  for (const line of lines) into.apply(line);
  return into;
}

const names = (m: Mirror) => [...m.objects.threads.keys()];
const title = (m: Mirror, name: string) => m.objects.threads.get(name)?.spec.title;

test("the present, then changes", () => {
  const m = told([{ type: "HELLO", version: "1" }, thread("a", "A"), thread("b", "B")]);
  assert.equal(m.complete, false);
  assert.equal(m.link.state, "loading");
  told([{ type: "SYNCED" }, thread("a", "A2"), { type: "DELETED", object: { kind: "Thread", metadata: { name: "b", uid: "uid-b" } } }], m);
  assert.equal(m.link.state, "live");
  assert.deepEqual(names(m), ["a"]);
  assert.equal(title(m, "a"), "A2");
});

test("what a new present does not name is gone, and stays until the present is complete", () => {
  const m = told([{ type: "HELLO" }, thread("a", "A"), thread("b", "B"), operation("o", "make"), { type: "SYNCED" }]);
  const left: string[] = [];
  m.left = (plural, o) => left.push(`${plural}/${o.metadata.name}`);
  told([{ type: "OFFLINE", since: 7 }], m);
  assert.deepEqual(m.link, { state: "offline", since: 7 });
  assert.deepEqual(names(m), ["a", "b"]);
  told([{ type: "HELLO" }, thread("b", "B2"), thread("c", "C")], m);
  assert.deepEqual(names(m), ["a", "b", "c"]);
  assert.deepEqual(m.apply({ type: "SYNCED" }), ["link", "threads", "operations"]);
  assert.deepEqual(names(m), ["b", "c"]);
  assert.equal(title(m, "b"), "B2");
  assert.deepEqual(left, []);
  m.apply({ type: "DELETED", object: { kind: "Thread", metadata: { name: "c" } } });
  assert.deepEqual(left, ["threads/c"]);
  assert.equal(m.descriptions.size, 0);
});

test("a present that broke off deletes nothing", () => {
  const m = told([{ type: "HELLO" }, thread("a", "A"), { type: "SYNCED" }, { type: "HELLO" }, { type: "OFFLINE", since: 1 }, { type: "HELLO" }, thread("a", "A"), { type: "SYNCED" }]);
  assert.deepEqual(names(m), ["a"]);
});

test("a late DELETED of an earlier object of the same name changes nothing", () => {
  const m = told([{ type: "HELLO" }, { type: "SYNCED" }, thread("a", "new", "uid-2"), { type: "DELETED", object: { kind: "Thread", metadata: { name: "a", uid: "uid-1" } } }]);
  assert.equal(title(m, "a"), "new");
});

test("names of different kinds do not mix", () => {
  const m = told([{ type: "HELLO" }, thread("x", "T"), operation("x", "make"), { type: "SYNCED" }, { type: "DELETED", object: { kind: "Operation", metadata: { name: "x" } } }]);
  assert.deepEqual(names(m), ["x"]);
  assert.equal(m.objects.operations.size, 0);
});

test("a description stays when a later line has none", () => {
  const m = told([{ type: "HELLO" }, operation("o", "make test"), operation("o")]);
  assert.equal(m.descriptions.get("o"), "make test");
});

test("what a newer daemon says beside that is passed over", () => {
  const m = told([{ type: "HELLO" }, { type: "MODIFIED", object: { kind: "Robot", metadata: { name: "r" } } } as unknown as Line, { type: "NEWS" } as unknown as Line, { type: "SYNCED" }]);
  assert.equal(m.link.state, "live");
});

for (const [name, lines] of Object.entries<Line[]>({
  nothing: [],
  "an unfinished first present": [{ type: "HELLO" }, thread("a", "A")],
  "a live one": [{ type: "HELLO", version: "1" }, thread("a", "A"), operation("o", "make"), { type: "CLIENTS", clients: [{ name: "c" }] }, { type: "SYNCED" }],
  "an unfinished second present": [{ type: "HELLO" }, thread("a", "A"), thread("b", "B"), { type: "SYNCED" }, { type: "HELLO", version: "2" }, thread("b", "B2")],
  "an offline one": [{ type: "HELLO" }, thread("a", "A"), { type: "SYNCED" }, { type: "OFFLINE", since: 5 }],
})) {
  test(`a tab that comes later is told the same: ${name}`, () => {
    const first = told(lines);
    const later = told(first.replay());
    const end: Line[] = [thread("z", "Z"), { type: "SYNCED" }];
    for (const m of [first, later]) {
      assert.deepEqual(later.objects, first.objects);
      assert.deepEqual(later.link, first.link);
      assert.equal(later.complete, first.complete);
      assert.deepEqual([...later.descriptions], [...first.descriptions]);
      assert.deepEqual(later.clients, first.clients);
      void m;
    }
    told(end, first);
    told(end, later);
    assert.deepEqual(later.objects, first.objects);
  });
}
