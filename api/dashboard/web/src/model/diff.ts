// A unified diff as lines with what they are, so that colour is not the only sign and nothing is parsed twice.

export type DiffKind = "add" | "del" | "hunk" | "file" | "same";

export interface DiffLine {
  kind: DiffKind;
  text: string;
}

/** diffLines takes a unified diff apart. Long lines and long diffs are cut; cut is the number of lines left out. */
export function diffLines(patch: string, maxLines = 2000): { lines: DiffLine[]; cut: number } {
  const all = patch.replace(/\n$/, "").split("\n");
  let inHunk = false;
  const lines = all.slice(0, maxLines).map((text): DiffLine => {
    if (text.startsWith("@@")) {
      inHunk = true;
      return { kind: "hunk", text };
    }
    if (!inHunk) return { kind: "file", text };
    if (text.startsWith("+")) return { kind: "add", text };
    if (text.startsWith("-")) return { kind: "del", text };
    return { kind: "same", text };
  });
  return { lines, cut: Math.max(0, all.length - maxLines) };
}
