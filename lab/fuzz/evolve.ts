import type { Coverage, Reached } from "./coverage.ts";
import { Finding } from "./finding.ts";
import { minimal } from "./minimal.ts";
import { mutate } from "./mutate.ts";
import { type Random, seededRandom } from "./random.ts";
import { bytesOfAll, type FuzzTarget } from "./target.ts";

/** An input that something was wrong with, as small as it could be made. */
export interface Found {
  readonly target: string;
  readonly what: string;
  readonly input: Uint8Array;
}

/** What fuzzing a target came to. */
export interface Evolution {
  readonly inputs: number;
  readonly accepted: number;
  /** Inputs kept because they reached a block first, shortened. */
  readonly kept: readonly Uint8Array[];
  readonly slowestMs: number;
  readonly found: readonly Found[];
}

/** How long, how, and what else is to know. */
export interface EvolveOptions {
  readonly seed: number;
  /** Called between batches: whether to go on. */
  readonly goesOn: (inputs: number) => boolean;
  /** Without it every mutation starts from a seed. */
  readonly coverage: Coverage | null;
  /** Called before each input, for whoever watches this process from outside. */
  readonly before?: (input: Uint8Array) => void;
  /** A single input must not take longer, in milliseconds. */
  readonly slowestMs: number;
  /** Findings after which it ends: more say nothing new. Default 8. */
  readonly mostFound?: number;
}

const BATCH = 50;
const MAX_BYTES = 4_096;
/** Every other mutation starts from one of the last so many that were kept. */
const NEWEST = 4;
/** Most runs to shorten one input that is kept: enough to halve 4 KiB down to a few bytes. */
const SHORTENING_RUNS = 64;

interface State {
  readonly target: FuzzTarget;
  readonly options: EvolveOptions;
  readonly random: Random;
  readonly corpus: Uint8Array[];
  readonly words: readonly Uint8Array[];
  readonly found: Map<string, Found>;
  inputs: number;
  accepted: number;
  slowestMs: number;
}

/**
 * Mutates inputs, holds each against the target's reference, and keeps those that reach a block of the code for the first
 * time, shortened, to be mutated further. The same seed and the same number of inputs try the same, as long as the code is the same.
 */
export async function evolve(target: FuzzTarget, options: EvolveOptions): Promise<Evolution> {
  const state: State = {
    ...{ target, options, random: seededRandom(options.seed), corpus: [...target.seeds] },
    ...{ words: bytesOfAll(target.words), found: new Map(), inputs: 0, accepted: 0, slowestMs: 0 },
  };
  const begunWith = state.corpus.length || state.corpus.push(new Uint8Array());
  await tryBatch(state, target.seeds);
  const { mostFound = 8 } = options;
  while (options.goesOn(state.inputs) && state.found.size < mostFound) {
    await tryBatch(
      state,
      Array.from({ length: BATCH }, () => nextInput(state)),
    );
  }
  const { inputs, accepted, corpus, slowestMs, found } = state;
  return { inputs, accepted, kept: corpus.slice(begunWith), slowestMs, found: [...found.values()] };
}

function nextInput({ target, random, corpus, words }: State): Uint8Array {
  const { generate, maxBytes = MAX_BYTES } = target;
  if (generate !== undefined && random.below(4) === 0) return generate(random);
  // What was kept last is where new code begins; in a large corpus it would be drawn too seldom.
  const from = random.below(2) === 0 ? corpus : corpus.slice(-NEWEST);
  return mutate(random.pick(from), { words, other: random.pick(corpus), maxBytes }, random);
}

async function tryBatch(state: State, inputs: readonly Uint8Array[]): Promise<void> {
  for (const input of inputs) await tryOne(state, input);
  const { coverage } = state.options;
  const reached = coverage?.fresh() ?? [];
  if (coverage === null || reached.length === 0) return;
  // Something in here was new: one by one they show which.
  for (const input of inputs) {
    runQuietly(state.target, input);
    const fresh = coverage.fresh();
    if (fresh.length === 0) continue;
    if (!state.target.seeds.includes(input)) state.corpus.push(await shortened(state.target, input, coverage, fresh));
    coverage.keep(fresh);
  }
  // What only the check itself reaches is no reason to look again.
  coverage.keep(reached);
}

// As long as it was made, a change would seldom hit the few bytes that matter.
function shortened(
  target: FuzzTarget,
  input: Uint8Array,
  coverage: Coverage,
  reached: readonly Reached[],
): Promise<Uint8Array> {
  const isAsFar = async (shorter: Uint8Array) => {
    runQuietly(target, shorter);
    return coverage.covers(coverage.fresh(), reached);
  };
  return minimal(input, isAsFar, SHORTENING_RUNS);
}

async function tryOne(state: State, input: Uint8Array): Promise<void> {
  const { target, options, found } = state;
  options.before?.(input);
  state.inputs++;
  const startedAtMs = performance.now();
  const what = await faultOf(target, input, (verdict) => {
    if (verdict === "accepted") state.accepted++;
  });
  const tookMs = performance.now() - startedAtMs;
  state.slowestMs = Math.max(state.slowestMs, tookMs);
  const fault = what ?? (tookMs > options.slowestMs ? `took ${Math.round(tookMs)} ms` : null);
  if (fault === null || found.has(kindOf(fault))) return;
  const isSame = async (smaller: Uint8Array) => kindOf((await faultOf(target, smaller)) ?? "") === kindOf(fault);
  const smallest = what === null ? input : await minimal(input, isSame);
  found.set(kindOf(fault), { target: target.name, what: (await faultOf(target, smallest)) ?? fault, input: smallest });
}

/** What is wrong with an input, or `null`. */
export async function faultOf(
  target: FuzzTarget,
  input: Uint8Array,
  tell: (verdict: "accepted" | "refused") => void = () => {},
): Promise<string | null> {
  try {
    tell(await target.try(input));
    return null;
  } catch (error) {
    // Anything else is an error of the target's own code, or of code that it had no answer ready for.
    return error instanceof Finding ? error.message : `crashed outside of its check: ${String(error)}`;
  }
}

// What is wrong, without what was found in this very input.
function kindOf(fault: string): string {
  return fault.replace(/[":(].*$/s, "").replace(/\d+/g, "#");
}

/** Runs the code under test; what it raises is held against nothing here. */
export function runQuietly(target: FuzzTarget, input: Uint8Array): void {
  try {
    target.run(input);
  } catch {
    // A refusal, or what `try` has told already.
  }
}
