import { until } from "../support/until.ts";
import { perform } from "./actions.ts";
import { answered } from "./checks.ts";
import type { Cluster } from "./cluster.ts";
import type { Load, Side } from "./load.ts";

/** Sends everything that was answered once more, as a client does that has forgotten its answer; some at a time. */
export async function resendAll(load: Load, sides: readonly Side[], timeoutMs: number): Promise<void> {
  const endAtMs = performance.now() + LIMIT_MS;
  const waiting = answered(load.actions);
  const sender = async () => {
    for (let action = waiting.shift(); action !== undefined; action = waiting.shift()) {
      const apis = sides.find(({ tenant }) => tenant === action?.tenant)?.apis ?? [];
      await perform(action, { apis, timeoutMs, givesUp: () => performance.now() > endAtMs }, 0);
    }
  };
  await Promise.all(Array.from({ length: SENDERS }, sender));
}

/** Waits until no entry is undecided and no message undelivered. What takes longer is found by the checks. */
export async function settle(cluster: Cluster, databases: readonly string[]): Promise<void> {
  const open = async () => {
    const leader = await cluster.leader();
    const counts = await Promise.all(databases.map((database) => cluster.ask(leader, OPEN, database).catch(() => [])));
    return counts.every(([row]) => row?.open === 0);
  };
  await until("entries and messages to settle", LIMIT_MS, open).catch(() => {});
}

const SENDERS = 8;
const LIMIT_MS = 90_000;
const OPEN = `SELECT (
    (SELECT count(*) FROM oncekey.entry WHERE state IN ('in_progress', 'needs_recovery'))
    + (SELECT count(*) FROM oncekey.outbox WHERE state <> 'delivered')
  )::int AS open`;
