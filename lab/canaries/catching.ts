import { tryCampaign } from "./by-campaign.ts";
import { tryTests } from "./by-test.ts";
import { tryWorld } from "./by-world.ts";
import { type ByTest, type Canary, type Catcher, catcherName } from "./canary.ts";
import { mutated } from "./mutation.ts";
import type { Verdict } from "./verdict.ts";

/** What trying a catcher takes. */
export interface Ground {
  /** A copy of the repository. */
  readonly root: string;
  /** What the tests find their database by. */
  readonly env: NodeJS.ProcessEnv;
}

/** What one catcher said of one canary. */
export interface Tried {
  readonly catcher: Catcher;
  readonly verdict: Verdict;
}

/** A canary's end. */
export interface Outcome {
  readonly canary: Canary;
  readonly tried: readonly Tried[];
  readonly seconds: number;
}

const isTest = (catcher: Catcher): catcher is ByTest => "test" in catcher;

/** What each catcher says of a tree; tests of one file run together. */
export async function tryAll(
  ground: Ground,
  catchers: readonly Catcher[],
  tree: "unbroken" | "broken" = "unbroken",
): Promise<Tried[]> {
  const tried: Tried[] = [];
  for (const tests of grouped(catchers.filter(isTest), ({ test }) => test)) {
    const verdicts = await tryTests(ground.root, tests, ground.env);
    for (const [at, catcher] of tests.entries()) tried.push({ catcher, verdict: verdicts[at] as Verdict });
  }
  for (const catcher of catchers) {
    if (isTest(catcher)) continue;
    const verdict = "world" in catcher ? tryWorld(ground.root, catcher, tree) : tryCampaign(ground.root, catcher);
    tried.push({ catcher, verdict: await verdict });
  }
  return tried;
}

/** Breaks the tree, asks the catchers of the canary, and mends it. */
export async function tryCanary(ground: Ground, canary: Canary): Promise<Outcome> {
  const startedAtMs = performance.now();
  const tried = await mutated(canary.edits, ground.root, () => tryAll(ground, canary.caughtBy, "broken"));
  return { canary, tried, seconds: (performance.now() - startedAtMs) / 1_000 };
}

/** Whether every catcher of a canary caught it. */
export function isCaught({ tried }: Outcome): boolean {
  return tried.length > 0 && tried.every(({ verdict }) => verdict.kind === "caught");
}

/** Each catcher once, of all canaries. */
export function catchersOf(canaries: readonly Canary[]): Catcher[] {
  const byName = new Map(
    canaries.flatMap(({ caughtBy }) => caughtBy).map((catcher) => [catcherName(catcher), catcher] as const),
  );
  return [...byName.values()];
}

/** Items with equal keys together, in the order of their first. */
export function grouped<T>(items: readonly T[], keyOf: (item: T) => string): T[][] {
  const groups = new Map<string, T[]>();
  for (const item of items) groups.set(keyOf(item), [...(groups.get(keyOf(item)) ?? []), item]);
  return [...groups.values()];
}
