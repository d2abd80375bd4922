import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

/** The root folder of the repository. */
export const root: string = fileURLToPath(new URL("../../..", import.meta.url));

/** One page: its path from the root, and its text. */
export interface Page {
  readonly path: string;
  readonly text: string;
}

/** A fenced block: its language, its text, and the line (from 1) on which its text begins. */
export interface CodeBlock {
  readonly language: string;
  readonly text: string;
  readonly line: number;
}

/** Every Markdown page of the repository that people read: those at the root, in docs/ and beside the examples. */
export function pages(): Page[] {
  const under = (folder: string) =>
    readdirSync(join(root, folder), { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile() && entry.name.endsWith(".md"))
      // Examples that are projects of their own have packages of their own.
      .filter((entry) => !entry.parentPath.includes("node_modules"))
      .map((entry) => join(entry.parentPath, entry.name).slice(root.length));
  const top = readdirSync(root).filter((name) => name.endsWith(".md"));
  const paths = [...top, ...under("docs"), ...under("examples")].sort();
  return paths.map((path) => ({ path, text: readFileSync(join(root, path), "utf8") }));
}

/** The fenced blocks of a page. */
export function codeBlocks(text: string): CodeBlock[] {
  const blocks: CodeBlock[] = [];
  for (const match of text.matchAll(/^```(\w*)[^\n]*\n([\s\S]*?)^```$/gm)) {
    const before = text.slice(0, match.index).split("\n").length;
    blocks.push({ language: match[1] ?? "", text: match[2] ?? "", line: before + 1 });
  }
  return blocks;
}

/** The text with fenced blocks and inline code blanked, so that what looks like a link in code is none. */
export function withoutCode(text: string): string {
  return text.replace(/^```[\s\S]*?^```$/gm, "").replace(/`[^`\n]*`/g, "``");
}

/** The anchors of a page, as GitHub makes them from headings. */
export function anchors(text: string): Set<string> {
  const headings = text.replace(/^```[\s\S]*?^```$/gm, "").matchAll(/^#{1,6} (.+)$/gm);
  return new Set([...headings].map((match) => slug(match[1] ?? "")));
}

function slug(heading: string): string {
  return heading
    .trim()
    .toLowerCase()
    .replace(/[^\p{L}\p{N}\s_-]/gu, "")
    .replace(/\s/g, "-");
}
