import assert from "node:assert/strict";
import { test } from "node:test";
import { classes, Reader, styled, type Line } from "../src/model/ansi.ts";

/** read gives all lines of an output that comes in pieces, each span as class:text. */
function read(pieces: string[], maxLine?: number): string[] {
  const reader = new Reader(maxLine);
  const done: Line[] = pieces.flatMap((p) => reader.write(p));
  return [...done, reader.current()].map((l) => l.spans.map((s) => (classes(s.style) ? `<${classes(s.style)}>${s.text}` : s.text)).join("|") + (l.cut ? `[+${l.cut}]` : ""));
}

const cases: [name: string, output: string, lines: string[]][] = [
  ["plain text", "one\ntwo", ["one", "two"]],
  ["a line end is its own line", "one\n", ["one", ""]],
  ["CR LF is one line end", "one\r\ntwo", ["one", "two"]],
  ["markup is text", "<img src=x onerror=alert(1)>", ["<img src=x onerror=alert(1)>"]],
  ["a colour and its end", "a\x1b[31mred\x1b[0mb", ["a|<f1>red|b"]],
  ["an empty parameter resets", "\x1b[1;32mx\x1b[my", ["<f2 bold>x|y"]],
  ["a style goes on over lines", "\x1b[34ma\nb", ["<f4>a", "<f4>b"]],
  ["bright colours and backgrounds", "\x1b[91;104mx", ["<f9 bg b12>x"]],
  ["256 colours go to the nearest of sixteen", "\x1b[38;5;196mx\x1b[48;5;21my", ["<f9>x|<f9 bg b4>y"]],
  ["grey of 256 colours", "\x1b[38;5;244mx", ["<f8>x"]],
  ["true colour", "\x1b[38;2;0;250;10mx", ["<f10>x"]],
  ["true colour by colons, with a colour space", "\x1b[38:2::250:0:0mx\x1b[4:0my", ["<f9>x|<f9>y"]],
  ["a colour out of range changes nothing", "\x1b[38;5;999mx", ["x"]],
  ["attributes", "\x1b[1;2;3;4;9mx", ["<bold faint ital under strike>x"]],
  ["attributes end one by one", "\x1b[1;3;4mx\x1b[22;23;24my", ["<bold ital under>x|y"]],
  ["inverse exchanges the colours", "\x1b[7;31mx", ["<bg b1>x"]],
  ["inverse without colours", "\x1b[7mx\x1b[27my", ["<bg inv>x|y"]],
  ["moving the cursor and clearing do nothing", "a\x1b[2J\x1b[H\x1b[10;10Hb\x1b[?25l\x1b[?1049hc", ["abc"]],
  ["a private sequence that ends in m is no style", "\x1b[>4;1mx", ["x"]],
  ["a title is dropped, ended by BEL", "a\x1b]0;title\x07b", ["ab"]],
  ["a link is dropped, its text stays, ended by ST", "\x1b]8;;http://example.invalid\x1b\\text\x1b]8;;\x1b\\", ["text"]],
  ["device control and application strings", "a\x1bPq#0;2\x1b\\b\x1b_x\x1b\\c\x1b^y\x1b\\d", ["abcd"]],
  ["a string that never ends ends with its line", "a\x1b]0;title\nb", ["a", "b"]],
  ["character sets and keypad modes", "a\x1b(0b\x1b=c\x1b>d", ["abcd"]],
  ["C1 introducers", "a\u009b31mb\u009d0;t\u009cc", ["a|<f1>bc"]],
  ["CAN ends a sequence", "a\x1b[3\x18b", ["ab"]],
  ["ESC inside of a sequence begins another", "a\x1b[3\x1b[32mb", ["a|<f2>b"]],
  ["full reset", "\x1b[31ma\x1bcb", ["<f1>a|b"]],
  ["CR begins the line anew", "10 %\r20 %\r\n", ["20 %", ""]],
  ["CR at the end keeps the line", "100 %\r", ["100 %"]],
  ["erasing the line", "abc\x1b[2Kd", ["d"]],
  ["backspace", "ab\bc", ["ac"]],
  ["backspace over a character beyond the BMP", "a\u{1F600}\bb", ["ab"]],
  ["overstrike, as of man pages", "N\bNA\bA", ["NA"]],
  ["a bell makes no sound", "a\x07b", ["ab"]],
  ["tabs stay", "a\tb", ["a\tb"]],
  ["other controls become visible", "a\0b\x7fc\u0085d", ["a\u2400b\u2421c\u27e8U+0085\u27e9d"]],
  ["overrides of the direction become visible", "a\u202eb\u2066c", ["a\u27e8U+202E\u27e9b\u27e8U+2066\u27e9c"]],
  ["right-to-left letters stay", "שלום عالم", ["שלום عالم"]],
  ["a lone surrogate becomes visible", "a\udc00b", ["a\u27e8U+DC00\u27e9b"]],
];

for (const [name, output, lines] of cases) {
  test(name, () => assert.deepEqual(read([output]), lines));
  test(`${name}, character by character`, () => assert.deepEqual(read(output.split("")), lines));
}

test("a long line is cut and counted, and the next one is whole", () => {
  assert.deepEqual(read(["x".repeat(1 << 20) + "\nnext"], 10), ["x".repeat(10) + `[+${(1 << 20) - 10}]`, "next"]);
});

test("a character is not cut in two", () => {
  assert.deepEqual(read(["abc\u{1F600}d"], 4), ["abc[+3]"]);
});

test("an unfinished sequence eats a bounded part of the output", () => {
  const [line] = read(["a\x1b]" + "x".repeat(1000) + "b"]);
  assert.ok(line!.length > 700 && line!.endsWith("b"), line);
});

test("a style that ends is the plain one again, so spans join", () => {
  assert.equal(styled(styled({}, "31"), "39"), styled({}, "0"));
});
