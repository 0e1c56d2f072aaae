// Text from others is shown as it is, but for what would act on the page or mislead the eye: control characters and
// marks that turn the direction of writing become visible.

/** Whether a code point is one that must be shown by name: a control, a direction mark, or a lone surrogate. */
export function isHidden(c: number): boolean {
  return (
    (c < 0x20 && c !== 0x09 && c !== 0x0a) || // C0
    (c >= 0x7f && c <= 0x9f) || // DEL, C1
    c === 0x061c || c === 0x200e || c === 0x200f || // direction marks
    (c >= 0x202a && c <= 0x202e) || // embeddings and overrides
    (c >= 0x2066 && c <= 0x2069) || // isolates
    c === 0x2028 || c === 0x2029 || c === 0xfeff || c === 0x200b || c === 0x2060 || // invisible
    (c >= 0xd800 && c <= 0xdfff) ||
    (c >= 0xfff9 && c <= 0xfffb) || // interlinear
    (c >= 0xe0000 && c <= 0xe007f) // tags
  );
}

/** visible is how a hidden code point is written: a control picture for C0 and DEL, else its number. */
export function visible(c: number): string {
  if (c < 0x20) return String.fromCharCode(0x2400 + c);
  if (c === 0x7f) return "\u2421";
  return `\u27e8U+${c.toString(16).toUpperCase().padStart(4, "0")}\u27e9`;
}

const suspect = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060\u2066-\u2069\ud800-\udfff\ufeff\ufff9-\ufffb]/;

/** printable shows everything of a text; line breaks and tabs stay. A carriage return before a line feed is left out. */
export function printable(s: string): string {
  if (!suspect.test(s)) return s;
  let out = "";
  for (const ch of s.replaceAll("\r\n", "\n")) {
    const c = ch.codePointAt(0)!;
    out += isHidden(c) ? visible(c) : ch;
  }
  return out;
}

/** oneLine is the printable first line of a text, cut where it is long. */
export function oneLine(s: string, width = 160): string {
  const trimmed = s.trim();
  const end = trimmed.search(/[\r\n]/);
  let line = end < 0 ? trimmed : trimmed.slice(0, end);
  const cut = line.length > width;
  if (cut) line = line.slice(0, width).replace(/[\ud800-\udbff]$/, "");
  return printable(line) + (cut || end >= 0 ? " …" : "");
}

/** bounded cuts a long text and says how much is missing. */
export function bounded(s: string, max: number): string {
  if (s.length <= max) return s;
  return s.slice(0, max).replace(/[\ud800-\udbff]$/, "") + `… (${(s.length - max).toLocaleString("en")} more characters)`;
}

/** short is enough of a UUID to tell it from its neighbours. */
export function short(id: string): string {
  return id.slice(0, id.startsWith("op-") ? 11 : 8);
}
