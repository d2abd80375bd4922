import { type Check, check, equalCheck } from "../support/check.ts";
import type { Fleet } from "../support/fleet.ts";
import { checkCanaries } from "./canaries.ts";
import { checkNothingLost } from "./checks.ts";
import type { Cluster, Mode } from "./cluster.ts";
import { collect, type Evidence } from "./evidence.ts";
import { runFreeze } from "./freeze.ts";
import type { Host } from "./host.ts";
import { type Load, loadOf } from "./load.ts";
import { checkLoss, lossFigures } from "./loss.ts";
import { resendAll, settle } from "./resend.ts";
import { type Arena, type Round, type RoundKind, runRound } from "./rounds.ts";
import { showUnconfirmed } from "./unconfirmed.ts";
import { openWorld, type World } from "./world.ts";

/** What a mode is run with. */
export interface Campaign {
  readonly host: Host;
  readonly cluster: Cluster;
  readonly fleet: Fleet;
  readonly mode: Mode;
  /** How many times the primary is killed. */
  readonly rounds: number;
  readonly random: () => number;
  readonly say: (line: string) => void;
}

/** What it found. */
export interface Findings {
  readonly checks: readonly Check[];
  readonly figures: readonly (readonly [label: string, figure: string | number])[];
}

const CLIENTS = 8;
/** Longest wait of a client for one answer. */
const TIMEOUT_MS = 3_000;
const DRAIN_LIMIT_MS = 90_000;

/** The faults of a mode, in order. With one round only what matters most. */
function planOf(mode: Mode, rounds: number): RoundKind[] {
  const kills = Array.from(
    { length: rounds },
    (_, place): RoundKind => (mode === "asynchronous" && place % 2 === 0 ? "held" : "kill"),
  );
  return rounds === 1 ? kills : ["switchover", "restart", ...kills, "orphan"];
}

/** Runs the rounds of a mode on a database of its own, and checks what is there at the end. */
export async function runMode(campaign: Campaign): Promise<Findings> {
  const { cluster, mode, say } = campaign;
  const world = await openWorld({ ...campaign, name: `lab_${mode}` });
  try {
    const load = loadOf({ sides: world.sides, clients: CLIENTS, random: campaign.random, timeoutMs: TIMEOUT_MS });
    const arena: Arena = { cluster, load, database: world.sides[0]?.database ?? "" };
    load.start();
    const frozen = mode === "synchronous" ? await runFreeze(arena) : null;
    if (frozen !== null)
      say(`${mode} freeze: ${frozen.timedOut} clients timed out, ${frozen.carriedOut} of them had their effect`);
    const rounds: Round[] = [];
    for (const kind of planOf(mode, campaign.rounds)) {
      const round = await runRound(arena, kind);
      rounds.push(round);
      say(`${mode} ${kind}: ${round.waiting} requests under way, no answer for ${seconds(round.silenceMs)} s`);
    }
    await load.drain(DRAIN_LIMIT_MS);
    const found = await judge(campaign, { world, load, rounds });
    const limits = mode === "synchronous" && campaign.rounds > 1 ? await showLimit(cluster, world, say) : [];
    const checks = [...(frozen?.checks ?? []), ...checkRounds(rounds, mode), ...found.checks, ...limits];
    const figures = [...figuresOf(load, rounds, frozen), ...found.figures];
    return {
      checks: checks.map((one) => ({ ...one, name: `${mode}: ${one.name}` })),
      figures: figures.map(([label, figure]) => [`${mode}: ${label}`, figure]),
    };
  } finally {
    await world.close();
  }
}

async function showLimit(cluster: Cluster, world: World, say: (line: string) => void): Promise<Check[]> {
  const [side] = world.sides;
  if (side === undefined) return [];
  say("the limit: a primary that crashes, comes back, and is lost, while no standby confirms");
  return showUnconfirmed(cluster, side);
}

interface Scene {
  readonly world: World;
  readonly load: Load;
  readonly rounds: readonly Round[];
}

/** Reads what is there, sends everything again, reads once more. */
async function judge({ cluster, mode }: Campaign, { world, load, rounds }: Scene): Promise<Findings> {
  const { ledgers, delivered, sides } = world;
  const databases = sides.map(({ database }) => database);
  const look = async (): Promise<Evidence> => {
    await settle(cluster, databases);
    return copyOf(await collect({ cluster, databases, actions: load.actions, ledgers, delivered }));
  };
  const before = await look();
  await resendAll(load, sides, TIMEOUT_MS);
  const after = await look();
  if (mode === "synchronous") return { checks: [...checkNothingLost(after), checkCanaries(after)], figures: [] };
  // Actions grow by the answers to what was sent again, in both.
  const seen = { before: { ...before, actions: after.actions }, after, rounds };
  return { checks: checkLoss(seen), figures: lossFigures(seen) };
}

const copyOf = (evidence: Evidence): Evidence => ({ ...evidence, delivered: [...evidence.delivered] });

/** Rounds that met no traffic, or did not do what they are for, show nothing. */
function checkRounds(rounds: readonly Round[], mode: Mode): Check[] {
  const strays = rounds.filter(({ stray }) => stray !== null).map(({ stray }) => stray);
  const expected = mode === "synchronous" ? "waits" : "answered";
  const name = `a primary that is cut off from its Patroni ${mode === "synchronous" ? "confirms nothing" : "goes on confirming"}`;
  return [
    check(
      "every fault met requests under way",
      rounds.filter(({ waiting }) => waiting === 0),
    ),
    check(
      "every killed primary was replaced",
      rounds.filter(({ kind, walBytes }) => kind !== "restart" && walBytes === null),
    ),
    ...strays.map((stray) => equalCheck(name, stray, expected)),
  ];
}

function figuresOf(
  { actions }: Load,
  rounds: readonly Round[],
  frozen: { timedOut: number; carriedOut: number } | null,
) {
  const figures: [string, string | number][] = [
    ["things that clients wanted done", actions.length],
    ["attempts", actions.reduce((sum, { attempts }) => sum + attempts.length, 0)],
  ];
  if (frozen !== null)
    figures.push(
      ["clients that timed out while no standby confirmed", frozen.timedOut],
      ["of them, carried out all the same", frozen.carriedOut],
    );
  for (const kind of new Set(rounds.map((round) => round.kind))) {
    const silences = rounds.filter((round) => round.kind === kind).map(({ silenceMs }) => seconds(silenceMs));
    figures.push([`without answers during ${kind}`, `${silences.join(", ")} s`]);
  }
  return figures;
}

const seconds = (ms: number): string => (ms / 1_000).toFixed(1);
