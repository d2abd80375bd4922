import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { PROOFS, type StoredProof } from "../lab/support/report.ts";
import { repositoryRoot } from "./check.ts";
import { markdownTable } from "./markdown-table.ts";

/** Every campaign whose figures are kept, by name: what it tried and what held. Written by the campaigns' `--proof`. */
export function proofSections(): string {
  const proofs = storedProofs();
  const overview = proofs.map(({ campaign, ranOn, command, passed, failed }) => [
    `[${campaign}](#${campaign})`,
    ranOn,
    `\`${command}\``,
    String(passed.length),
    String(failed.length),
  ]);
  const head = markdownTable(["campaign", "ran on", "command", "held", "failed"], overview);
  return [head, ...proofs.map(sectionOf)].join("\n\n");
}

function storedProofs(): StoredProof[] {
  const folder = join(repositoryRoot, PROOFS);
  const files = readdirSync(folder).filter((name) => name.endsWith(".json"));
  return files.sort().map((name) => JSON.parse(readFileSync(join(folder, name), "utf8")) as StoredProof);
}

function sectionOf({ campaign, figures, passed, failed }: StoredProof): string {
  const numbers = markdownTable(
    ["figure", "value"],
    figures.map(([label, figure]) => [label, String(figure)]),
  );
  const held = passed.map((name) => `- ${name}`);
  const broken = failed.map((name) => `- **failed**: ${name}`);
  return [`### ${campaign}`, numbers, [...held, ...broken].join("\n")].join("\n\n");
}
