import {
  ambiguous,
  created,
  createOncekey,
  found,
  happened,
  type Observer,
  type OncekeyEvent,
  type OncekeyOptions,
  reject,
  type Store,
} from "oncekey";
import { fromPg } from "oncekey/drivers/pg";
import { idempotent } from "oncekey/fetch";
import { postgresStore } from "oncekey/postgres";
import { prometheus } from "oncekey/prometheus";
import { createSweeper } from "oncekey/sweeper";
import type { PoolClient } from "pg";
import { createDatabase, testPool } from "../../support/postgres.ts";

/** What the operations do with a request; chosen by its body. */
export type Does = "succeeds" | "is refused" | "throws" | "waits" | "sends";

const SCOPE = { tenant: "acme", client: null };

/** Values that no event, metric, log or span may hold. */
export const SECRETS = { key: "key-that-nobody-may-see", body: "body-that-nobody-may-see", token: "Bearer-not-to-see" };

/** A database, the events of all instances on it, and their counters. */
export async function observedWorld(...more: Observer[]) {
  const { url } = await createDatabase();
  const pool = testPool(url);
  const events: OncekeyEvent[] = [];
  const metrics = prometheus();
  const observe: Observer[] = [(event) => void events.push(event), metrics.observe, ...more];
  const base = postgresStore(fromPg(pool)) as Store<PoolClient>;
  return {
    url,
    base,
    events,
    metrics,
    kinds: () => events.map(({ kind }) => kind),
    shop: (options: Partial<OncekeyOptions<PoolClient>> = {}, onStoreDown: "run" | "refuse" = "refuse") =>
      shop({ store: base, observe, ...options }, onStoreDown),
    /** What `act` adds to the counters: `name{labels}` to number, without those that stay. */
    async counted(act: () => Promise<unknown>): Promise<Record<string, number>> {
      const before = countersOf(metrics.text());
      await act();
      const added = [...countersOf(metrics.text())].map(([name, value]) => [name, value - (before.get(name) ?? 0)]);
      return Object.fromEntries(added.filter(([, value]) => value !== 0));
    },
  };
}

/** The counters of an exposition, short: `requests{operation="o",result="busy"}`. */
function countersOf(text: string): Map<string, number> {
  const lines = text.split("\n").map((line) => /^oncekey_(\w+)_total(\{.*\}) (\S+)$/.exec(line));
  return new Map(lines.flatMap((match) => (match === null ? [] : [[`${match[1]}${match[2]}`, Number(match[3])]])));
}

/** An instance with one operation of each kind, which do as their request says. */
async function shop(options: OncekeyOptions<PoolClient>, onStoreDown: "run" | "refuse") {
  const once = createOncekey<PoolClient>({ waitMs: 0, onError: () => {}, ...options });
  const held: { waiting?: () => void; until: Promise<void> } = { until: Promise.resolve() };
  const psp = { fails: 0, finds: false };
  const orders = once.transaction({
    name: "orders",
    version: 1,
    maxDurationMs: 60_000,
    async run({ input, send }) {
      const { does } = (input as { body: { does: Does } }).body;
      if (does === "throws") throw new RangeError(SECRETS.body);
      if (does === "is refused") return reject(422, { code: "limit" });
      if (does === "sends") await send("order.created", { secret: SECRETS.body });
      if (does === "waits") {
        held.waiting?.();
        await held.until;
      }
      return created("/orders/1", { secret: SECRETS.body });
    },
  });
  const charges = once.phases({
    name: "charges",
    version: 1,
    async run(op) {
      await op.phase("row", async () => 1);
      const { does } = (op.input as { body: { does: Does } }).body;
      const run = async () => {
        if (psp.fails-- > 0) throw new Error(SECRETS.body);
        return { id: 1 };
      };
      const find = async () => (psp.finds ? found({ id: 1 }) : ambiguous(2));
      if (does === "throws") throw new Error(SECRETS.body);
      if (does === "waits") await held.until;
      const recover = { find, settlesWithinMs: 60_000 };
      await op.call("authorize", { timeoutMs: 10_000, request: {}, run, recover: { dedupes: { forMs: 86_400_000 } } });
      await op.call("capture", { timeoutMs: 10_000, request: {}, run, recover });
      return op.complete(async ({ send }) => {
        await send("charge.settled", {});
        return created("/charges/1", {});
      });
    },
  });
  const refunds = once.capture({
    name: "refunds",
    version: 1,
    onStoreDown,
    reconcile: async () => happened(created("/refunds/1", {})),
  });
  await once.start();
  const handle = idempotent(refunds, { scope: () => SCOPE }, async (request) => {
    const status = Number(request.headers.get("x-status"));
    return new Response(SECRETS.body, { status });
  });
  const body = (does: Does) => ({ body: { does, secret: SECRETS.body } });
  return {
    once,
    held,
    psp,
    sweeper: createSweeper(once),
    order: (key: string, does: Does = "succeeds", waitMs = 0, correlation: string | null = null) =>
      once.run(orders, { scope: SCOPE, key: `${SECRETS.key}-${key}`, input: body(does), waitMs, correlation }),
    charge: (key: string, does: Does = "succeeds", waitMs = 0, correlation: string | null = null) =>
      once.run(charges, { scope: SCOPE, key: `${SECRETS.key}-${key}`, input: body(does), waitMs, correlation }),
    refund: (key: string | null, status = 201, more: Record<string, string> = {}) =>
      handle(
        new Request("http://localhost/refunds", {
          method: "POST",
          body: SECRETS.body,
          headers: {
            authorization: SECRETS.token,
            "x-status": String(status),
            ...more,
            ...(key === null ? {} : { "idempotency-key": `${SECRETS.key}-${key}` }),
          },
        }),
      ),
  };
}
