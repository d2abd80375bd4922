/**
 * One target in a process of its own, so that an input that hangs or kills it takes nothing else along. It writes each input
 * down before it tries it; whoever started it reads it there.
 */
import { ftruncateSync, openSync, writeSync } from "node:fs";
import { startCoverage } from "./coverage.ts";
import type { Evolution, Found } from "./evolve.ts";
import type { Growth } from "./growth.ts";
import type { FuzzTarget } from "./target.ts";

/** What a runner is told. */
export interface Assignment {
  /** The module that holds the targets, as a URL. */
  readonly module: string;
  readonly target: string;
  readonly seed: number;
  /** How long to mutate, in milliseconds. */
  readonly forMs: number;
  /** How many inputs to mutate even where that takes longer. */
  readonly atLeast: number;
  /** Runs of each property. */
  readonly runs: number;
  /** Where the input at hand is written. */
  readonly scratch: string;
  /** A single input must not take longer, in milliseconds. */
  readonly slowestMs: number;
  /** As in `EvolveOptions`. */
  readonly mostFound?: number;
}

/** What a runner says in the end. */
export interface Result {
  readonly evolution: Omit<Evolution, "found" | "kept"> & { readonly kept: number };
  /** `base64` is the input, or `null` for a broken property, which has no single one. */
  readonly found: readonly (Omit<Found, "input"> & { readonly base64: string | null })[];
  readonly properties: number;
  readonly growths: readonly Growth[];
  readonly blocks: number;
}

async function work(assignment: Assignment): Promise<Result> {
  const coverage = startCoverage((url) => /\/src\/|\/planted/.test(url));
  // After the start of the counting: see startCoverage.
  const { targets } = (await import(assignment.module)) as { readonly targets: readonly FuzzTarget[] };
  const { evolve } = await import("./evolve.ts");
  const target = targets.find(({ name }) => name === assignment.target);
  if (target === undefined) throw new Error(`There is no target ${assignment.target}.`);
  const faults = await brokenProperties(target, assignment);
  const endAtMs = performance.now() + assignment.forMs;
  const { found, kept, ...evolution } = await evolve(target, {
    ...assignment,
    coverage,
    before: noteIn(assignment.scratch),
    goesOn(inputs) {
      process.send?.({ kind: "alive", inputs });
      return inputs < assignment.atLeast || performance.now() < endAtMs;
    },
  });
  const { measureGrowth } = await import("./growth.ts");
  const alive = () => void process.send?.({ kind: "alive", inputs: evolution.inputs });
  const growths = target.families.map((family) => measureGrowth(target, family, coverage, alive));
  const mutated = found.map(({ input, ...rest }) => ({ ...rest, base64: Buffer.from(input).toString("base64") }));
  return {
    evolution: { ...evolution, kept: kept.length },
    found: [...faults, ...mutated],
    properties: target.properties.length,
    growths,
    blocks: coverage.known(),
  };
}

async function brokenProperties(target: FuzzTarget, { seed, runs }: Assignment): Promise<Result["found"]> {
  const broken: Result["found"][number][] = [];
  for (const { name, check } of target.properties) {
    process.send?.({ kind: "alive", inputs: 0 });
    try {
      await check({ seed, numRuns: runs });
    } catch (error) {
      broken.push({ target: target.name, what: `${name}: ${String(error).slice(0, 600)}`, base64: null });
    }
  }
  return broken;
}

function noteIn(path: string): (input: Uint8Array) => void {
  const file = openSync(path, "w");
  return (input) => {
    ftruncateSync(file, input.length);
    writeSync(file, input, 0, input.length, 0);
  };
}

process.once("message", (assignment: Assignment) => {
  work(assignment).then(
    (result) => process.send?.({ kind: "result", result }, () => process.disconnect()),
    (error: unknown) => {
      console.error(error);
      process.exit(1);
    },
  );
});
