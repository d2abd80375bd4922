import { type Comparison, KIND_COMPARISONS, peerComparison, TARGETS, UNNAMED } from "./comparisons.ts";
import type { Field } from "./contenders.ts";
import { COUNTED, type Counters, count } from "./counters.ts";
import { type Figures, machineClass } from "./figures.ts";
import type { Pace } from "./measure.ts";
import { availablePeers, startPeersRedis } from "./peers.ts";
import { comparisonLines, counterLine } from "./print.ts";
import { type ComparisonFigures, run } from "./run.ts";
import { query, startWorld } from "./world.ts";

/** What a run of the bench is asked for. */
export interface BenchChoices {
  readonly quick: boolean;
  /** Groups of comparisons; `null`: all that the form has. */
  readonly only: readonly string[] | null;
  readonly pace: Pace;
  /** Requests that the server's counters are read over. */
  readonly countedRequests: number;
  /** Where the measured processes leave their profiles; `null`: none are made. */
  readonly profileDirectory: string | null;
}

/** What `--only` takes. */
export const GROUPS: readonly string[] = ["counters", "transaction", "replay", "groups", "peers", "unnamed", "kinds"];

/** Runs what was chosen, telling each result as it comes. */
export async function measureAll(
  choices: BenchChoices,
  say: (line: string) => void,
): Promise<Omit<Figures, "command">> {
  const { profileDirectory } = choices;
  const chosen = await comparisonsOf(choices, say);
  const flags = profileDirectory === null ? [] : ["--cpu-prof", `--cpu-prof-dir=${profileDirectory}`];
  const world = await startWorld(flags);
  const redis = chosen.some(({ group }) => group === "peers") ? await startPeersRedis() : null;
  try {
    const field: Field = { world, clients: world.programs.start("clients"), redisPort: redis?.port ?? null };
    const [server] = await query(world.server.url, "SHOW server_version");
    const machine = machineClass(String(server?.server_version));
    say(machine);
    const comparisons: ComparisonFigures[] = [];
    for (const comparison of chosen) {
      const figures = await run(field, comparison, choices.pace);
      for (const line of comparisonLines(figures)) say(line);
      comparisons.push(figures);
    }
    const counters = await countAll(field, choices, say);
    return { ranOn: new Date().toISOString().slice(0, 10), machine, comparisons, counters };
  } finally {
    await world.close();
    await redis?.close();
  }
}

async function comparisonsOf(
  { quick, only }: BenchChoices,
  say: (line: string) => void,
): Promise<readonly Comparison[]> {
  const isWanted = (group: string) => only?.includes(group) ?? true;
  const peers = isWanted("peers") ? await availablePeers(quick, say) : [];
  const others = quick && only === null ? TARGETS : [...TARGETS, UNNAMED, ...KIND_COMPARISONS];
  const wanted = others.filter(({ group }) => isWanted(group));
  return peers.length === 0 ? wanted : [...wanted, peerComparison(peers)];
}

async function countAll(
  field: Field,
  { only, countedRequests }: BenchChoices,
  say: (line: string) => void,
): Promise<Record<string, Counters>> {
  const counters: Record<string, Counters> = {};
  if (only !== null && !only.includes("counters")) return counters;
  for (const work of COUNTED) {
    const counted = await count(field, work, countedRequests);
    say(counterLine(work.name, counted));
    counters[work.name] = counted;
  }
  return counters;
}
