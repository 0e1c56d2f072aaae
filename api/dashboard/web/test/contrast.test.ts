// Every colour that a command's output can ask for is legible on every background that it can ask for, in both themes.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

const css = readFileSync(new URL("../src/app.css", import.meta.url), "utf8");
type Color = [number, number, number];

const variables = ([0, 1] as const).map((theme) => {
  const found = new Map<string, Color>();
  for (const [, name, light, dark] of css.matchAll(/--([\w-]+): light-dark\((#\w{6}), (#\w{6})\)/g)) {
    const hex = theme === 0 ? light! : dark!;
    found.set(name!, [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16)) as Color);
  }
  return found;
});

function luminance(c: Color): number {
  const [r, g, b] = c.map((v) => {
    const s = v / 255;
    return s <= 0.04045 ? s / 12.92 : ((s + 0.055) / 1.055) ** 2.4;
  }) as Color;
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}

function contrast(a: Color, b: Color): number {
  const [x, y] = [luminance(a), luminance(b)].sort((p, q) => q - p) as [number, number];
  return (x + 0.05) / (y + 0.05);
}

const share = Number(/color-mix\(in srgb, var\(--tint\) (\d+)%/.exec(css)![1]) / 100;
const mix = (a: Color, b: Color): Color => a.map((v, i) => v * share + b[i]! * (1 - share)) as Color;

variables.forEach((v, theme) => {
  test(`${theme === 0 ? "light" : "dark"}: output`, () => {
    const sunk = v.get("sunk")!;
    const texts = ["text", "soft", ...Array.from({ length: 16 }, (_, i) => `c${i}`)];
    const tints = ["c1", "c2", "c3", "c4", "c5", "c6", "c7", "c8"];
    const poor: string[] = [];
    for (const text of texts) {
      for (const [name, ground] of [["none", sunk] as const, ...tints.map((t) => [t, mix(v.get(t)!, sunk)] as const)]) {
        const c = contrast(v.get(text)!, ground);
        if (c < 4.5) poor.push(`${text} on ${name}: ${c.toFixed(2)}`);
      }
    }
    assert.deepEqual(poor, []);
  });
  test(`${theme === 0 ? "light" : "dark"}: the page`, () => {
    const poor: string[] = [];
    for (const text of ["text", "soft", "link", "busy", "good", "bad", "warn", "call", "calm"]) {
      for (const ground of ["bg", "panel", "sunk", "hover", "chosen"]) {
        const c = contrast(v.get(text)!, v.get(ground)!);
        if (c < 4.5) poor.push(`${text} on ${ground}: ${c.toFixed(2)}`);
      }
    }
    assert.deepEqual(poor, []);
  });
});
