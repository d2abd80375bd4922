import { markdownTable } from "../../scripts/markdown-table.ts";
import { type Catcher, catcherName } from "./canary.ts";
import { CANARIES } from "./plants/index.ts";

/** The table of docs/canaries.md: every break, where it is made, and what must catch it. */
export function canariesTable(): string {
  const rows = CANARIES.map(({ id, what, edits, caughtBy }) => [
    `\`${id}\``,
    what,
    [...new Set(edits.map(({ file }) => `\`${file}\``))].join(" "),
    caughtBy.map(shown).join("<br>"),
  ]);
  return markdownTable(["id", "what is broken", "where", "caught by"], rows);
}

function shown(catcher: Catcher): string {
  if (!("test" in catcher)) return `\`${catcherName(catcher)}\``;
  const name = catcher.test.replace(/^test\//, "").replace(/\.test\.ts$/, "");
  return `\`${name}\`: ${catcher.title.replaceAll("|", "\\|")}`;
}
