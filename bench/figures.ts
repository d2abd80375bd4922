import { readFileSync } from "node:fs";
import { cpus, loadavg, totalmem } from "node:os";
import { join } from "node:path";
import { repositoryRoot } from "../scripts/check.ts";
import type { Counters } from "./counters.ts";
import type { ComparisonFigures } from "./run.ts";

/** Everything that a run of the bench came to. */
export interface Figures {
  readonly ranOn: string;
  /** What the command was. */
  readonly command: string;
  readonly machine: string;
  readonly comparisons: readonly ComparisonFigures[];
  readonly counters: Readonly<Record<string, Counters>>;
}

/** The short form that `--json` writes: medians. `null` where `--only` left it out. */
export interface Summary {
  readonly ratios: Readonly<Record<(typeof SUMMARY_RATIOS)[number], number | null>>;
  readonly counters: {
    readonly transaction: Readonly<Record<"walBytes" | "deadTuples" | "statements", number | null>>;
    readonly replay: { readonly statements: number | null };
  };
  readonly peers: readonly { readonly name: string; readonly oncekeyOverPeer: number }[];
}

const SUMMARY_RATIOS = [
  "transactionVsHandwritten",
  "transactionVsPgbench",
  "transactionVsPlain",
  "replayVsRead",
  "groupClaimsGain",
] as const;

/** What {@link Figures} come to. */
export function summaryOf({ comparisons, counters }: Pick<Figures, "comparisons" | "counters">): Summary {
  const targets = comparisons.filter(({ group }) => ["transaction", "replay", "groups"].includes(group));
  const medians = new Map(targets.flatMap(({ ratios }) => ratios.map(({ name, spread }) => [name, spread.median])));
  const { transaction, replay } = counters;
  const { walBytes = null, deadTuples = null, statements = null } = transaction ?? {};
  const peers = comparisons.filter(({ group }) => group === "peers").flatMap(({ ratios }) => ratios);
  return {
    ratios: Object.fromEntries(SUMMARY_RATIOS.map((name) => [name, medians.get(name) ?? null])) as Summary["ratios"],
    counters: {
      transaction: { walBytes, deadTuples, statements },
      replay: { statements: replay?.statements ?? null },
    },
    peers: peers.map(({ name, spread }) => ({ name, oncekeyOverPeer: spread.median })),
  };
}

/** The class of this machine in a few words, and how busy others kept it: over a load of 1 the ratios are blurred. */
export function machineClass(postgres: string): string {
  const model = cpus()[0]?.model.trim() || process.arch;
  const gib = Math.round(totalmem() / 2 ** 30);
  const machine = `${cpus().length} cores (${model}), ${gib} GiB, Node ${process.versions.node}, PostgreSQL ${postgres}`;
  return `${machine}, loopback; load average ${loadavg()[0]?.toFixed(1)} when it began`;
}

/** Where `--write` keeps the figures, relative to the root. */
export const FIGURES = "bench/figures.json";

/** The figures that were kept last. */
export const keptFigures = (): Figures => JSON.parse(readFileSync(join(repositoryRoot, FIGURES), "utf8")) as Figures;
