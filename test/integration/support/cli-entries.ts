import {
  created,
  createOncekey,
  none,
  type OncekeyOptions,
  type RecoverNever,
  type RunResult,
  type Scope,
} from "oncekey";
import { fromPg } from "oncekey/drivers/pg";
import { postgresStore } from "oncekey/postgres";
import type pg from "pg";
import { gate } from "../../support/gate.ts";
import { testPool } from "../../support/postgres.ts";

/** Words that only inputs, recorded values, headers, bodies and messages hold: no output of the command may show one. */
export const CONTENT = ["input-content", "recorded-content", "header-content", "body-content", "message-content"];

/** Whose keys they are, unless a test says otherwise. */
export const SCOPE: Scope = { tenant: "acme", client: "app" };

/** Makes entries of all kinds for the command to look at. */
export interface Entries {
  /** `transaction`, succeeded, with a message in the outbox. */
  invoice(key: string, scope?: Scope): Promise<RunResult>;
  /** `phases`, succeeded: one phase, one call with a settled intent. */
  charge(key: string): Promise<RunResult>;
  /** `phases`, in `needs_recovery` with an open intent: the call failed and must not be repeated. */
  payout(key: string): Promise<RunResult>;
  /** The same, with a minute after which nothing of it can still land. */
  settlingPayout(key: string): Promise<RunResult>;
  /** `phases`, in progress until the returned function lets it go on. */
  standing(key: string): Promise<() => Promise<RunResult>>;
}

/** Starts an instance on that database, through the package's public names. */
export async function entriesOn(url: string, options: Partial<OncekeyOptions<pg.PoolClient>> = {}): Promise<Entries> {
  const once = createOncekey({ store: postgresStore(fromPg(testPool(url))), onError: () => {}, ...options });
  const arrived = gate();
  const released = gate();
  const invoices = once.transaction({
    name: "invoices.create",
    version: 1,
    async run({ send }) {
      await send("invoice.created", { note: "message-content" });
      return created("/v1/invoices/header-content", { note: "body-content" });
    },
  });
  const charges = once.phases({
    name: "charges.create",
    version: 2,
    async run(op) {
      await op.phase("charge_created", async () => "recorded-content");
      const recover = { find: async () => none(), cancel: async () => {} };
      const request = { note: "input-content" };
      await op.call("authorize", { timeoutMs: 5_000, request, run: async () => "recorded-content", recover });
      return op.complete(async () => created("/v1/charges/header-content", { note: "body-content" }));
    },
  });
  const payoutsOf = (name: string, recover: RecoverNever) =>
    once.phases({
      name,
      version: 1,
      async run(op) {
        const run = async () => Promise.reject(new Error("the connection was cut"));
        await op.call("transfer", { timeoutMs: 5_000, request: null, run, recover });
        return op.complete(async () => created("/v1/payouts/1", {}));
      },
    });
  const payouts = payoutsOf("payouts.create", { atMostOnce: true });
  const settlingPayouts = payoutsOf("payouts.settling", { atMostOnce: true, settlesWithinMs: 60_000 });
  const standing = once.phases({
    name: "standing.create",
    version: 1,
    async run(op) {
      arrived.open();
      await released.promise;
      return op.complete(async () => created("/v1/standing/1", {}));
    },
  });
  await once.start();
  const request = (key: string, scope = SCOPE) => ({ scope, key, input: { body: { note: "input-content" } } });
  return {
    invoice: (key, scope) => once.run(invoices, request(key, scope)),
    charge: (key) => once.run(charges, request(key)),
    payout: (key) => once.run(payouts, request(key)),
    settlingPayout: (key) => once.run(settlingPayouts, request(key)),
    async standing(key) {
      const running = once.run(standing, request(key));
      await arrived.promise;
      return async () => {
        released.open();
        return running;
      };
    },
  };
}
