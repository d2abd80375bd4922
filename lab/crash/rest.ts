import { join } from "node:path";
import { randomOf } from "../support/random.ts";
import { storiesOf, withoutEnd } from "./checks/view.ts";
import { historiesIn, readLedger } from "./evidence.ts";
import { awaited } from "./fault.ts";
import { type Exchange, openHistory, readHistories } from "./history.ts";
import { CUSTOMERS } from "./orders.ts";
import { type Asking, untilFinal } from "./raw-lane.ts";
import type { World } from "./world.ts";

const CLIENTS_LIMIT_MS = 60_000;
const DRAIN_LIMIT_MS = 90_000;
const ASK_LIMIT_MS = 40_000;
const AT_ONCE = 6;

/**
 * After the faults: the provider behaves, everything runs, the clients end what they have begun, those who gave up ask once
 * more, and what is left comes to an end. Waits for conditions; what does not come in time is found by the checks.
 */
export async function comeToRest(world: World, say: (what: string) => void, stopping: AbortSignal): Promise<void> {
  const { crew, behave, goodDay } = world;
  await Promise.all(crew.members.map((one) => one.exclusively(() => one.start())));
  await behave(goodDay);
  say("the faults are over; the clients end what they have begun");
  for (const clients of crew.of("clients")) await clients.stop(CLIENTS_LIMIT_MS);
  const left = await askAgain(world);
  say(`${left} that had given up have asked once more; what is left comes to an end`);
  const rests = await awaited(async () => stopping.aborted || (await restless(world)) === "", DRAIN_LIMIT_MS);
  if (!rests) say(`not at rest: ${await restless(world)}`);
}

const UNFINISHED = `
  SELECT operation || ' ' || state || coalesce(' (' || reason || ')', '') AS what, count(*)::int AS count
  FROM oncekey.entry
  WHERE state NOT IN ('succeeded', 'failed') AND NOT (state = 'released' AND run_kind = 'capture') GROUP BY 1
  UNION ALL
  SELECT 'message of ' || topic, count(*)::int FROM oncekey.outbox WHERE state = 'pending' GROUP BY 1`;

/** What still moves; empty where nothing does. A captured run that was given back waits for its client: it is at rest. */
async function restless({ database, dir }: World): Promise<string> {
  const { rows } = await database.pool.query<{ what: string; count: number }>(UNFINISHED);
  const { pending } = readLedger(join(dir, "psp", "ledger.jsonl"));
  const moving = [...rows, ...(pending > 0 ? [{ what: "payment that lands later", count: pending }] : [])];
  return moving.map(({ what, count }) => `${count} ${what}`).join(", ");
}

/** What is still known stays so while it is asked about: an outcome that is purged meanwhile would be run again. */
const KNOWN = `
  UPDATE oncekey.entry SET expires_at = expires_at + interval '2 minutes'
  WHERE tenant = $1 AND client = $2 AND operation = $3 AND key = $4
  AND (expires_at IS NULL OR expires_at > clock_timestamp()) RETURNING 1`;

/**
 * A user who comes back later: whoever has no final answer, and whose key the service still knows, asks again. Nothing new
 * begins by it: a key that is not known any more (or never was) is left alone, as the retry window demands.
 */
async function askAgain({ dir, network, database, options }: World): Promise<number> {
  const open = storiesOf({ ...readHistories(historiesIn(dir)), effects: [] }).flatMap(withoutEnd);
  const history = openHistory(join(dir, "history-later.jsonl"), "later");
  const random = randomOf(options.seed, "later");
  let asked = 0;
  const queue = open.values();
  const worker = async () => {
    for (const exchange of queue) {
      const asking = askingOf(exchange);
      const { tenant, client, what, key } = asking;
      const known = await database.pool.query(KNOWN, [tenant, client, `${what}s.create`, key]);
      if (known.rows.length === 0) continue;
      asked++;
      await untilFinal({ front: network.frontUrl, history, random }, asking, performance.now() + ASK_LIMIT_MS);
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
  history.close();
  return asked;
}

function askingOf({ tenant, client, what, key, payload, role }: Exchange): Asking {
  const token = CUSTOMERS.find(([, caller]) => caller.tenant === tenant && caller.client === client)?.[0] ?? "";
  return { tenant, client, what, key, payload, role, path: `/v1/${what}s`, token };
}
