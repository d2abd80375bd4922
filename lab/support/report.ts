import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { repositoryRoot } from "../../scripts/check.ts";
import { emptyTally, tallyLine } from "../../scripts/tally.ts";
import type { Check } from "./check.ts";

/** What a campaign came to, as `docs/proof.md` shows it. */
export interface Proof {
  /** Name of the campaign: its row, and its file under `lab/proof/`. */
  readonly campaign: string;
  /** The command that does the same again, seed included. */
  readonly command: string;
  /** What it tried, in the order of reading: label and figure. */
  readonly figures: readonly (readonly [label: string, figure: string | number])[];
}

/** A proof as it is stored: with its day and its checks. */
export interface StoredProof extends Proof {
  readonly ranOn: string;
  readonly passed: readonly string[];
  readonly failed: readonly string[];
}

/** Where the stored proofs lie, relative to the root. */
export const PROOFS = "lab/proof";

/**
 * Ends a campaign: prints its figures, each check with what was found, and the line `N passed, N failed`. With `write`
 * (a campaign's `--proof`) it also stores them for `docs/proof.md`. Returns the exit code: 1 where a check failed, or none
 * was made.
 */
export async function report(proof: Proof, checks: readonly Check[], { write = false } = {}): Promise<0 | 1> {
  for (const [label, figure] of proof.figures) say(`${label}: ${figure}`);
  for (const { name, passed, found } of checks) say(`${passed ? "ok   " : "FAIL "} ${name}${found && `: ${found}`}`);
  const names = (passed: boolean) => checks.filter((one) => one.passed === passed).map(({ name }) => name);
  const [passed, failed] = [names(true), names(false)];
  if (write) await store({ ...proof, ranOn: new Date().toISOString().slice(0, 10), passed, failed });
  say(tallyLine({ ...emptyTally, passed: passed.length, failed: failed.length }));
  return failed.length === 0 && passed.length > 0 ? 0 : 1;
}

async function store(proof: StoredProof): Promise<void> {
  const folder = join(repositoryRoot, PROOFS);
  await mkdir(folder, { recursive: true });
  await writeFile(join(folder, `${proof.campaign}.json`), `${JSON.stringify(proof, null, 2)}\n`);
}

/** A line on standard output. */
export function say(line: string): void {
  process.stdout.write(`${line}\n`);
}
