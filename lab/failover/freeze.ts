import { type Check, check, equalCheck } from "../support/check.ts";
import { until } from "../support/until.ts";
import type { Action } from "./actions.ts";
import type { Node } from "./node.ts";
import { type Probe, probeOperation, probeStatement } from "./probe.ts";
import { type Arena, moreAnswers } from "./rounds.ts";

/** What was seen while no standby confirmed anything. */
export interface Freeze {
  readonly checks: readonly Check[];
  /** Attempts whose client stopped waiting. */
  readonly timedOut: number;
  /** Of these, how many had an effect that a later attempt was answered with. */
  readonly carriedOut: number;
}

const TIMED_OUT = 6;
const LIMIT_MS = 60_000;

/** What a session's `synchronous_commit` means while no standby confirms. */
const LEVELS = [
  { level: "on", operation: "waits" },
  { level: "remote_write", operation: "waits" },
  // Oncekey commits synchronously where the session would not.
  { level: "off", operation: "waits" },
  // The operator's word that the local disk is enough: Oncekey leaves it alone.
  { level: "local", operation: "answered" },
] as const;

/** Stops PostgreSQL on both standbys: no commit can be confirmed. Lets clients time out, then lets the standbys go on. */
export async function runFreeze(arena: Arena): Promise<Freeze> {
  const { cluster, load } = arena;
  await moreAnswers(load);
  const leader = await cluster.leader();
  const standbys = cluster.nodes.filter((node) => node !== leader);
  for (const standby of standbys) standby.freeze();
  const frozenAtMs = performance.now();
  const probes: Probe[] = [];
  try {
    const timedOut = () => load.actions.filter((action) => timedOutSince(action, frozenAtMs));
    await until("clients to time out", LIMIT_MS, () => timedOut().length >= TIMED_OUT);
    const levels = await checkLevels(arena, leader, probes);
    const thawedAtMs = performance.now();
    const early = load.actions.filter(({ finals: [first] }) => {
      return first !== undefined && first.sentAtMs > frozenAtMs && first.endedAtMs < thawedAtMs;
    });
    for (const standby of standbys) standby.thaw();
    await moreAnswers(load);
    const carriedOut = timedOut().filter(({ finals }) => finals[0]?.replayed === true).length;
    const checks = [
      check("nothing is answered while no standby confirms", early.map(brief)),
      ...levels,
      equalCheck("what timed out had been carried out, and a retry got its answer", carriedOut > 0, true),
    ];
    return { checks, timedOut: timedOut().length, carriedOut };
  } finally {
    for (const standby of standbys) standby.thaw();
    await Promise.all(probes.map((probe) => probe.close()));
  }
}

/** What commits do under each `synchronous_commit` of their session. What waits is added to `probes`. */
async function checkLevels({ cluster, database }: Arena, leader: Node, probes: Probe[]): Promise<Check[]> {
  const bare = await probeStatement(cluster, leader, database, "off");
  const cancelled = await probeStatement(cluster, leader, database, "on");
  probes.push(bare, cancelled);
  const isTold = await cancelled.cancel();
  const found: string[] = [];
  for (const { level } of LEVELS) {
    const probe = await probeOperation(cluster, leader, database, level);
    probes.push(probe);
    found.push(`${level}: ${probe.commit}`);
  }
  const expected = LEVELS.map(({ level, operation }) => `${level}: ${operation}`);
  return [
    equalCheck("an operation waits at every synchronous_commit but local", found.join(", "), expected.join(", ")),
    equalCheck("a bare commit with synchronous_commit = off does not wait", bare.commit, "answered"),
    equalCheck("LIMIT a commit whose wait is cancelled is answered, though no standby has it", isTold, true),
  ];
}

const brief = ({ kind, key }: Action) => ({ kind, key });
const timedOutSince = ({ attempts }: Action, atMs: number): boolean =>
  attempts.some(({ status, endedAtMs }) => status === null && endedAtMs > atMs);
