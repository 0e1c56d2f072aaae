// What a command prints is read as a terminal would: colours and weights become styles, a carriage return goes back to
// the beginning of the line, a backspace takes a character back. Everything else that a terminal would obey (moving
// the cursor, setting the title, links, queries) is dropped, so no output can write outside of its own line.

import { isHidden, visible } from "./printable.ts";

/** Style of a stretch of text. Colours are numbers of the sixteen that every theme has; others are taken to the nearest. */
export interface Style {
  fg?: number;
  bg?: number;
  bold?: boolean;
  faint?: boolean;
  italic?: boolean;
  underline?: boolean;
  strike?: boolean;
  inverse?: boolean;
}

export interface Span {
  text: string;
  style: Style;
}

/** A line of output. cut counts the characters beyond its bound. */
export interface Line {
  spans: Span[];
  length: number;
  cut: number;
}

const plain: Style = Object.freeze({});
const maxSequence = 256; // characters after which an unfinished sequence is given up, so a broken one eats no output

type State = "text" | "escape" | "charset" | "csi" | "string" | "stringEscape";

/** Reader turns pieces of output into lines; a sequence may be broken over two pieces. */
export class Reader {
  private state: State = "text";
  private sequence = "";
  private style: Style = plain;
  private line: Line = emptyLine();
  private overwrite = false; // after a carriage return: the next character begins the line anew
  private high = ""; // half of a character at the end of a piece

  /** maxLine bounds a line, in UTF-16 units; the rest of it is counted. */
  constructor(private readonly maxLine = 4000) {}

  /** write reads a piece and returns the lines that it finishes. */
  write(piece: string): Line[] {
    const done: Line[] = [];
    let s = this.high + piece;
    this.high = "";
    if (/[\ud800-\udbff]$/.test(s)) {
      this.high = s.slice(-1);
      s = s.slice(0, -1);
    }
    let run = 0; // begin of plain text not yet taken
    for (let i = 0; i < s.length; i++) {
      const c = s.charCodeAt(i);
      if (this.state === "text" && c >= 0x20 && c < 0x7f) continue;
      if (this.state === "text" && c > 0x9f && !(c >= 0xd800 && c <= 0xdfff) && !isHidden(c)) continue;
      if (this.state === "text") {
        this.add(s.slice(run, i));
        i = this.special(s, i, done);
      } else {
        this.inSequence(s, i, c, done);
      }
      run = i + 1;
    }
    if (this.state === "text") this.add(s.slice(run));
    return done;
  }

  /** current is the line that is not finished. */
  current(): Line {
    return this.line;
  }

  private special(s: string, i: number, done: Line[]): number {
    const c = s.codePointAt(i)!;
    switch (c) {
      case 0x0a:
        this.overwrite = false;
        done.push(this.line);
        this.line = emptyLine();
        break;
      case 0x0d:
        this.overwrite = true;
        break;
      case 0x09:
        this.add("\t");
        break;
      case 0x08:
        this.takeBack();
        break;
      case 0x07:
        break; // a bell
      case 0x1b:
        this.begin("escape");
        break;
      case 0x9b:
        this.begin("csi");
        break;
      case 0x90: case 0x98: case 0x9d: case 0x9e: case 0x9f:
        this.begin("string");
        break;
      default:
        this.add(isHidden(c) ? visible(c) : String.fromCodePoint(c));
        return c > 0xffff ? i + 1 : i;
    }
    return i;
  }

  private begin(state: State): void {
    this.state = state;
    this.sequence = "";
  }

  private inSequence(s: string, i: number, c: number, done: Line[]): void {
    if (c === 0x18 || c === 0x1a) return this.begin("text"); // cancel
    if (c === 0x0a || c === 0x0d) { // broken off: the line goes on
      this.begin("text");
      this.special(s, i, done);
      return;
    }
    switch (this.state) {
      case "escape":
        if (c === 0x5b) return this.begin("csi"); // [
        if (c === 0x5d || c === 0x50 || c === 0x58 || c === 0x5e || c === 0x5f) return this.begin("string"); // ] P X ^ _
        if (c >= 0x20 && c <= 0x2f) return this.begin("charset");
        if (c === 0x1b) return this.begin("escape");
        if (c === 0x63) this.style = plain; // full reset
        return this.begin("text");
      case "charset":
        if (c >= 0x20 && c <= 0x2f) return;
        return this.begin("text");
      case "csi":
        if (c === 0x1b) return this.begin("escape");
        if (c >= 0x40 && c <= 0x7e) {
          if (c === 0x6d) this.style = styled(this.style, this.sequence);
          else if (c === 0x4b && /^[12]$/.test(this.sequence)) this.erase();
          return this.begin("text");
        }
        break;
      case "string":
        if (c === 0x07 || c === 0x9c) return this.begin("text");
        if (c === 0x1b) return this.begin("stringEscape");
        break;
      case "stringEscape":
        if (c === 0x5c) return this.begin("text");
        return this.begin("string");
    }
    this.sequence += String.fromCharCode(c);
    if (this.sequence.length > maxSequence) this.begin("text");
  }

  private add(text: string): void {
    if (text === "") return;
    if (this.overwrite) {
      this.erase();
      this.overwrite = false;
    }
    const line = this.line;
    const room = line.cut > 0 ? 0 : this.maxLine - line.length;
    if (text.length > room) {
      const kept = text.slice(0, room).replace(/[\ud800-\udbff]$/, "");
      line.cut += text.length - kept.length;
      text = kept;
      if (text === "") return;
    }
    line.length += text.length;
    const last = line.spans.at(-1);
    if (last && last.style === this.style) last.text += text;
    else line.spans.push({ text, style: this.style });
  }

  private erase(): void {
    this.line = emptyLine();
  }

  private takeBack(): void {
    const last = this.line.spans.at(-1);
    if (!last || this.line.cut > 0) return;
    const chars = [...last.text];
    const gone = chars.pop() ?? "";
    last.text = chars.join("");
    this.line.length -= gone.length;
    if (last.text === "") this.line.spans.pop();
  }
}

function emptyLine(): Line {
  return { spans: [], length: 0, cut: 0 };
}

/** styled is the style after a "select graphic rendition" with these parameters. */
export function styled(before: Style, parameters: string): Style {
  if (!/^[0-9;:]*$/.test(parameters)) return before; // private sequences
  let s: Style = { ...before };
  const fields = parameters.split(";");
  for (let i = 0; i < fields.length; i++) {
    const field = fields[i]!;
    if (field.includes(":")) {
      s = colon(s, field.split(":"));
      continue;
    }
    const n = Number(field === "" ? 0 : field);
    if (n === 38 || n === 48) {
      const [color, used] = extended(fields.slice(i + 1).map(Number));
      i += used;
      if (color !== undefined) s[n === 38 ? "fg" : "bg"] = color;
      continue;
    }
    s = simple(s, n);
  }
  return Object.values(s).some((v) => v !== undefined && v !== false) ? s : plain;
}

function colon(s: Style, parts: string[]): Style {
  const n = Number(parts[0]);
  if (n === 4) return { ...s, underline: parts[1] !== "0" };
  if (n !== 38 && n !== 48) return s;
  const numbers = parts.slice(1).map(Number);
  if (numbers[0] === 2 && numbers.length >= 5) numbers.splice(1, 1); // the colour space
  const [color] = extended(numbers);
  return color === undefined ? s : { ...s, [n === 38 ? "fg" : "bg"]: color };
}

function simple(s: Style, n: number): Style {
  switch (n) {
    case 0: return {};
    case 1: return { ...s, bold: true };
    case 2: return { ...s, faint: true };
    case 3: return { ...s, italic: true };
    case 4: case 21: return { ...s, underline: true };
    case 7: return { ...s, inverse: true };
    case 9: return { ...s, strike: true };
    case 22: { const { bold: _b, faint: _f, ...rest } = s; return rest; }
    case 23: { const { italic: _, ...rest } = s; return rest; }
    case 24: { const { underline: _, ...rest } = s; return rest; }
    case 27: { const { inverse: _, ...rest } = s; return rest; }
    case 29: { const { strike: _, ...rest } = s; return rest; }
    case 39: { const { fg: _, ...rest } = s; return rest; }
    case 49: { const { bg: _, ...rest } = s; return rest; }
  }
  if (n >= 30 && n <= 37) return { ...s, fg: n - 30 };
  if (n >= 90 && n <= 97) return { ...s, fg: n - 82 };
  if (n >= 40 && n <= 47) return { ...s, bg: n - 40 };
  if (n >= 100 && n <= 107) return { ...s, bg: n - 92 };
  return s;
}

/** extended reads 5;N or 2;R;G;B and returns the nearest of the sixteen colours and how many numbers it took. */
function extended(n: number[]): [number | undefined, number] {
  if (n[0] === 5) {
    const c = n[1] ?? NaN;
    if (!(c >= 0 && c <= 255)) return [undefined, 2];
    return [c < 16 ? c : nearest(...cube(c)), 2];
  }
  if (n[0] === 2) {
    const [r, g, b] = [n[1] ?? NaN, n[2] ?? NaN, n[3] ?? NaN];
    if (![r, g, b].every((v) => v >= 0 && v <= 255)) return [undefined, 4];
    return [nearest(r, g, b), 4];
  }
  return [undefined, 1];
}

/** cube is the colour of a number from 16 to 255. */
function cube(c: number): [number, number, number] {
  if (c >= 232) {
    const v = 8 + (c - 232) * 10;
    return [v, v, v];
  }
  const level = (v: number) => (v === 0 ? 0 : 55 + v * 40);
  c -= 16;
  return [level(Math.floor(c / 36)), level(Math.floor(c / 6) % 6), level(c % 6)];
}

const sixteen: [number, number, number][] = [
  [0, 0, 0], [205, 0, 0], [0, 205, 0], [205, 205, 0], [0, 0, 238], [205, 0, 205], [0, 205, 205], [229, 229, 229],
  [127, 127, 127], [255, 0, 0], [0, 255, 0], [255, 255, 0], [92, 92, 255], [255, 0, 255], [0, 255, 255], [255, 255, 255],
];

function nearest(r: number, g: number, b: number): number {
  let best = 0;
  let least = Infinity;
  sixteen.forEach(([x, y, z], i) => {
    const d = (r - x) ** 2 + (g - y) ** 2 + (b - z) ** 2;
    if (d < least) [best, least] = [i, d];
  });
  return best;
}

/** classes are the class names of a style; inverse text takes the other's colour. */
export function classes(s: Style): string {
  const names: string[] = [];
  if (s.inverse) {
    names.push("bg", s.fg === undefined ? "inv" : `b${s.fg}`);
    if (s.bg !== undefined) names.push(`f${s.bg}`);
  } else {
    if (s.fg !== undefined) names.push(`f${s.fg}`);
    if (s.bg !== undefined) names.push("bg", `b${s.bg}`);
  }
  if (s.bold) names.push("bold");
  if (s.faint) names.push("faint");
  if (s.italic) names.push("ital");
  if (s.underline) names.push("under");
  if (s.strike) names.push("strike");
  return names.join(" ");
}
