import { until } from "../support/until.ts";
import type { Action, Attempt } from "./actions.ts";
import type { Cluster } from "./cluster.ts";
import type { Load } from "./load.ts";
import type { Node } from "./node.ts";
import { type Commit, probeOperation } from "./probe.ts";

/** Where a round takes place. */
export interface Arena {
  readonly cluster: Cluster;
  readonly load: Load;
  /** Where commits are probed. */
  readonly database: string;
}

/** What happened in a round. Instants of `performance.now()`, durations in milliseconds. */
export interface Round {
  readonly kind: RoundKind;
  /** What was answered before is on every standby; from here on it may be lost where replication is asynchronous. */
  readonly fromAtMs: number;
  /** The primary is gone, stopped, or hands over. */
  readonly faultAtMs: number;
  /** Attempts that waited for an answer at that moment. */
  readonly waiting: number;
  /** Longest time without any answer that counts, from the fault to the end of the round. */
  readonly silenceMs: number;
  /** WAL of the old primary that the new one does not have, in bytes; `null` where nobody was promoted. */
  readonly walBytes: number | null;
  /** What became of a commit on the old primary after another one was promoted; `null` where that was not tried. */
  readonly stray: Commit | null;
}

/**
 * `kill`: primary and Patroni die. `held`: the same, after its WAL was held back for a while. `orphan`: Patroni alone dies,
 * so that there are two primaries for a while. `restart`: PostgreSQL alone dies and is started again in its place.
 */
export type RoundKind = "kill" | "held" | "orphan" | "switchover" | "restart";

const ANSWERS = 100;
const HELD_ANSWERS = 40;
const LIMIT_MS = 120_000;

/** Runs a round: a fault under load, a new primary, answers again, and a cluster that is whole again. */
export async function runRound(arena: Arena, kind: RoundKind): Promise<Round> {
  const { cluster, load } = arena;
  await moreAnswers(load);
  const old = await cluster.leader();
  const fromAtMs = performance.now();
  await everywhere(cluster, old, await positionOf(cluster, old));
  if (kind === "held") await holdBack(load, old);
  const waiting = load.waiting();
  const position = await positionOf(cluster, old);
  const faultAtMs = performance.now();
  const { promoted, stray = null } = await faults[kind](arena, old);
  await until("an answer to what was sent after the fault", LIMIT_MS, () =>
    endsOf(load.actions).some(after(faultAtMs)),
  );
  await moreAnswers(load);
  const silenceMs = longestSilence(load.actions, faultAtMs);
  const walBytes = promoted === null ? null : await bytesBehind(cluster, promoted, position);
  if (!old.isUp()) old.start();
  await cluster.whole();
  return { kind, fromAtMs, faultAtMs, waiting, silenceMs, walBytes, stray };
}

/** The new primary (`null`: the old one goes on), and what the old one did with a commit after that. */
interface After {
  readonly promoted: Node | null;
  readonly stray?: Commit;
}

/** What each kind does to the primary. */
const faults: Readonly<Record<RoundKind, (arena: Arena, old: Node) => Promise<After>>> = {
  async kill({ cluster }, old) {
    await old.kill();
    return { promoted: await cluster.leader(old) };
  },
  async held({ cluster }, old) {
    await old.kill();
    // Ends the connections of the dead, as its host would; what was held back is gone.
    old.link.back();
    return { promoted: await cluster.leader(old) };
  },
  async orphan({ cluster, database }, old) {
    await old.killPatroni();
    const promoted = await cluster.leader(old);
    const probe = await probeOperation(cluster, old, database, "on");
    await old.kill();
    await probe.close();
    return { promoted, stray: probe.commit };
  },
  switchover: async ({ cluster }) => ({ promoted: await cluster.switchOver() }),
  async restart({ cluster }, old) {
    await old.killPostgres();
    const leader = await cluster.leader();
    return { promoted: leader === old ? null : leader };
  },
};

/** Until so many actions were sent and answered of which no standby has heard. */
async function holdBack(load: Load, primary: Node): Promise<void> {
  const heldAtMs = performance.now();
  primary.link.silent();
  const unheard = () => endsOf(load.actions).filter(after(heldAtMs)).length;
  await until("answers while WAL is held back", LIMIT_MS, () => unheard() >= HELD_ANSWERS);
}

/** Waits for so many more answers that count. */
export async function moreAnswers(load: Load, count = ANSWERS): Promise<void> {
  const enough = load.answered() + count;
  await until(`${count} more answers`, LIMIT_MS, () => load.answered() >= enough);
}

const endsOf = (actions: readonly Action[]): Attempt[] => actions.flatMap(({ finals }) => finals);
const after =
  (atMs: number) =>
  ({ sentAtMs }: Attempt): boolean =>
    sentAtMs > atMs;

function longestSilence(actions: readonly Action[], fromMs: number): number {
  const ends = endsOf(actions).map(({ endedAtMs }) => endedAtMs);
  const instants = [fromMs, ...ends.filter((endedAtMs) => endedAtMs > fromMs).sort((a, b) => a - b)];
  return Math.max(...instants.slice(1).map((instant, place) => instant - (instants[place] ?? 0)));
}

/** Waits until every standby has written the log up to there. */
async function everywhere(cluster: Cluster, primary: Node, position: string): Promise<void> {
  const there = `SELECT count(*)::int AS standbys FROM pg_stat_replication WHERE flush_lsn >= '${position}'`;
  await until("the standbys to have the log", LIMIT_MS, async () => {
    const [row] = await cluster.ask(primary, there);
    return row?.standbys === cluster.nodes.length - 1;
  });
}

async function positionOf(cluster: Cluster, node: Node): Promise<string> {
  const [row] = await cluster.ask(node, "SELECT pg_current_wal_flush_lsn()::text AS lsn");
  return String(row?.lsn);
}

/** How far the position lies behind the point where the new primary's timeline left the old one. */
async function bytesBehind(cluster: Cluster, promoted: Node, position: string): Promise<number> {
  const [file] = await cluster.ask(
    promoted,
    "SELECT pg_read_file('pg_wal/' || left(pg_walfile_name(pg_current_wal_lsn()), 8) || '.history') AS history",
  );
  const forked = String(file?.history).trim().split("\n").at(-1)?.split("\t")[1] ?? "0/0";
  const [row] = await cluster.ask(promoted, `SELECT pg_wal_lsn_diff('${position}', '${forked}')::float8 AS bytes`);
  return Math.max(0, Number(row?.bytes));
}
