import { randomUUID } from "node:crypto";
import { type Check, equalCheck } from "../support/check.ts";
import { until } from "../support/until.ts";
import { type Action, perform } from "./actions.ts";
import type { Cluster } from "./cluster.ts";
import type { Side } from "./load.ts";
import type { Node } from "./node.ts";

const LIMIT_MS = 60_000;
const WAITING = "SELECT 1 FROM pg_stat_activity WHERE wait_event = 'SyncRep' AND datname = current_database()";

/**
 * A limit of PostgreSQL that no client of it can lift, shown so that docs/guarantees.md does not have to be believed. A
 * commit that no standby has confirmed is visible once the primary has crashed and started again in its place: a replay
 * reads it. What keeps the answer from being lost with that primary is Patroni: it then names no standby that may follow.
 */
export async function showUnconfirmed(cluster: Cluster, { database, tenant, token, apis }: Side): Promise<Check[]> {
  const old = await cluster.leader();
  const standbys = cluster.nodes.filter((node) => node !== old);
  const action = invoiceOf(tenant, token);
  const sending = { apis: apis.slice(0, 1), timeoutMs: 3_000 };
  const send = () => perform(action, { ...sending, givesUp: () => false }, 0);
  for (const standby of standbys) standby.freeze();
  try {
    let isEnough = false;
    const first = perform(action, { ...sending, givesUp: () => isEnough }, 0);
    const isWaiting = async () => (await cluster.ask(old, WAITING, database)).length > 0;
    await until("a commit to wait for a standby", LIMIT_MS, isWaiting);
    isEnough = true;
    await old.killPostgres();
    await first;
    const isBack = async () => (await cluster.leader()) === old;
    await until("the primary to be back in its place", LIMIT_MS, isBack);
    await send();
    const namesNobody = async () => !(await old.roles()).includes("sync_standby");
    await until("Patroni to name no standby", LIMIT_MS, namesNobody);
    await old.kill();
  } finally {
    for (const standby of standbys) standby.thaw();
  }
  await until("the leader's lock to end", LIMIT_MS, () => isLeaderless(standbys));
  old.start();
  const leader = await cluster.leader();
  await send();
  await cluster.whole();
  const [before, after] = action.finals;
  return [
    equalCheck("LIMIT a restarted primary replays what no standby has confirmed", before?.replayed, true),
    equalCheck("Patroni promotes no standby that lacks it: the same primary leads again", leader.name, old.name),
    equalCheck("and the answer is the same", after?.body, before?.body),
  ];
}

function invoiceOf(tenant: string, token: string): Action {
  const payload = { customer_id: "cus_1", currency: "EUR", amount_minor: 1 };
  const sent = { amount: 1, senders: 1, attempts: [], finals: [] };
  return { kind: "invoice", tenant, token, key: randomUUID(), payload, ...sent };
}

async function isLeaderless(standbys: readonly Node[]): Promise<boolean> {
  const roles = await Promise.all(standbys.map((standby) => standby.roles().catch(() => ["leader"])));
  return !roles.flat().includes("leader");
}
