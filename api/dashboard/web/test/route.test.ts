import assert from "node:assert/strict";
import { test } from "node:test";
import { link, parse } from "../src/model/route.ts";

test("a place is what its link says", () => {
  for (const id of ["a", "a b", "a=b", "<img src=x>", "100%", "ä#&"]) assert.deepEqual(parse(link("thread", id)), { at: "thread", id });
  for (const at of ["overview", "inbox"] as const) assert.deepEqual(parse(link(at)), { at });
});

test("what is not a link of ours is the overview, or an id as it stands", () => {
  for (const hash of ["", "#", "#thread", "#thread=", "#other=x", "#=x"]) assert.deepEqual(parse(hash), { at: "overview" });
  assert.deepEqual(parse("#thread=<img src=x"), { at: "thread", id: "<img src=x" });
  assert.deepEqual(parse("#handoff=%zz"), { at: "handoff", id: "%zz" });
});
