import type { LayoutName } from "oncekey/postgres";
import { type Check, check } from "../../support/check.ts";
import { streamOf } from "../chance.ts";
import { walkPlace } from "../walk.ts";
import type { World } from "../world.ts";
import { openHouse } from "./house.ts";
import { type Driven, driveBoth } from "./lockstep.ts";
import { BOTH_END, BOTH_MOVE, following, moversWorld } from "./movers.ts";

/** What is to be driven on PostgreSQL. */
export interface PostgresTerms {
  readonly worlds: readonly World[];
  readonly schedules: number;
  readonly seed: string;
  readonly layout: LayoutName;
  say(line: string): void;
}

/**
 * Worlds in which an outcome that lies in a partition expires. There it is absent at once; in one table it is found, as
 * expired, until it is purged or forgotten: other steps with the same end, which `postgres-layout` shows.
 */
const EXPIRING = new Set(["v19", "v24", "retention", "retention-slow-run"]);

/** Drives a sample of each world's schedules on the memory store and PostgreSQL at once. */
export async function runOnPostgres({ worlds: given, schedules, seed, layout, say }: PostgresTerms) {
  const worlds = layout === "plain" ? given : given.filter(({ name }) => !EXPIRING.has(name));
  const house = await openHouse(layout);
  const driven: Driven[] = [];
  const startedAtMs = performance.now();
  try {
    // At random hardly anybody waits for a lock: one schedule in which somebody surely does.
    driven.push(await driveBoth(house, moversWorld(), seed, following(...BOTH_MOVE, ...BOTH_END)));
    for (let index = 0; index < schedules; index++) {
      const world = worlds[index % worlds.length] as World;
      const next = streamOf(`${seed}:${world.name}:${index}`);
      const one = await driveBoth(house, world, `${seed}.${index}`, (choices) => walkPlace(choices, next));
      driven.push(one);
      if (one.difference !== null) sayDifference(say, one);
      if ((index + 1) % 50 === 0) say(`${index + 1} schedules driven on both stores`);
    }
  } finally {
    await house.close();
  }
  return {
    checks: [...checksOf([...worlds, moversWorld()], driven), ...(layout === "plain" ? [] : [apartCheck(driven)])],
    figures: figuresOf(driven, performance.now() - startedAtMs),
  };
}

function sayDifference(say: (line: string) => void, { world, labels, difference }: Driven): void {
  say(`DIFFERENCE in ${world}: ${difference}`);
  for (const [index, label] of labels.entries()) say(`  ${String(index + 1).padStart(3)}. ${label}`);
}

function checksOf(worlds: readonly World[], driven: readonly Driven[]): Check[] {
  const ofWorlds = worlds.map(({ name }) =>
    check(
      `PostgreSQL does in ${name} what the memory store does`,
      driven
        .filter(({ world, difference }) => world === name && difference !== null)
        .map(({ difference }) => difference),
    ),
  );
  const waited = driven.some(({ waits }) => waits > 0);
  return [...ofWorlds, check("steps waited for locks (else waiting was not compared)", waited ? [] : ["none"])];
}

/** Of the partitioned layout nothing is shown where all that was stored lay in the table of entries. */
function apartCheck(driven: readonly Driven[]): Check {
  const isSeen = driven.some(({ apart }) => apart > 0);
  return check("outcomes lay in partitions (else the layout was not compared)", isSeen ? [] : ["none"]);
}

function figuresOf(driven: readonly Driven[], tookMs: number): (readonly [string, number])[] {
  const sum = (count: (one: Driven) => number) => driven.reduce((total, one) => total + count(one), 0);
  return [
    ["schedules driven on both stores", driven.length],
    ["steps compared", sum(({ labels }) => labels.length)],
    ["steps after which a statement waited for a lock", sum(({ waits }) => waits)],
    ["outcomes that lay in partitions at the end", sum(({ apart }) => apart)],
    ["seconds", Math.round(tookMs / 1_000)],
  ];
}
