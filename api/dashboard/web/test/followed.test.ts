import assert from "node:assert/strict";
import { test } from "node:test";
import { choose, come, leave, none, type Followed } from "../src/model/followed.ts";

function is(f: Followed, followed: string, waiting: string): void {
  assert.deepEqual([f.followed.join(""), f.waiting.join("")], [followed, waiting]);
}

test("the next one is followed when one ends", () => {
  let f = [..."abcde"].reduce(come, none);
  is(f, "abc", "de");
  f = leave(f, "b");
  is(f, "acd", "e");
  f = leave(f, "e"); // one that waits may end, too
  is(f, "acd", "");
  f = ["a", "c", "d"].reduce(leave, f);
  is(f, "", "");
});

test("a chosen one takes the place of the oldest, which comes back first", () => {
  let f = [..."abcde"].reduce(come, none);
  f = choose(f, "e");
  is(f, "bce", "ad");
  is(choose(f, "b"), "ceb", "ad");
  f = leave(f, "c");
  is(f, "bea", "d");
});

test("one that comes again is there once", () => {
  is(come([..."abcd"].reduce(come, none), "a"), "bcd", "a");
});
