import { randomUUID } from "node:crypto";
import {
  created,
  createOncekey,
  type Oncekey,
  type OncekeyOptions,
  type Operation,
  type Outcome,
  type Reconcile,
  type RunKind,
  type RunResult,
  type Scope,
  type Store,
} from "oncekey";
import { type Driver, postgresStore } from "oncekey/postgres";
import type { RequestProof } from "../../../src/core/fingerprint.ts";
import { identityOf } from "../../../src/core/identity.ts";
import { inMemory } from "../../../src/engine/run-result.ts";

// These captures have no reconcile on purpose; the warning of it, once an instance, would bury everything else.
process.removeAllListeners("warning");

/** Every run kind. */
export const RUN_KINDS: readonly RunKind[] = ["transaction", "phases", "capture"];

/** What is ordered; `order` is the key again, so that business rows can be counted by key. */
export interface Order {
  readonly order: string;
  readonly amount: number;
}

/** Places of the operations' code where a test can look in, block or throw. `handling`: a captured handler began. */
export type Place = "transaction" | "phase" | "between" | "complete" | "handling" | "capture";

/** Called at a place; after its effect was written, where it has one. `tx` where there is one. */
export type Hook<Tx> = (place: Place, order: Order, tx: Tx | undefined) => Promise<void> | void;

/** How a set of orders is made. */
export interface OrdersOptions<Tx> {
  readonly driver: Driver<Tx>;
  /** Default: the PostgreSQL store over the driver. */
  readonly store?: Store<Tx>;
  readonly control?: Driver<unknown>;
  readonly once?: Partial<OncekeyOptions<Tx>>;
  readonly at?: Hook<Tx>;
  readonly maxDurationMs?: number;
  readonly retentionMs?: number;
  /** Of the `transaction` operation. Default: its own. */
  readonly lookUp?: "first" | "skip";
  /** Default true: a message goes out with the outcome. */
  readonly sends?: boolean;
  readonly onStoreDown?: "refuse" | "run";
  readonly reconcile?: Reconcile;
  /** Default: all of them. */
  readonly kinds?: readonly RunKind[];
  /** One name for whatever kind there is; default: a name for each kind. */
  readonly name?: string;
}

/** What a test can say of one run. */
export interface OrderRun {
  readonly amount?: number;
  readonly scope?: Scope;
  readonly waitMs?: number;
  /** Runs it as a binding does, with a proof that is the same for every kind. Captured runs always are. */
  readonly bound?: boolean;
}

/** One instance with an operation of each kind; each writes one row to `effect`, `phases` one more as it completes. */
export interface Orders<Tx> {
  readonly once: Oncekey<Tx>;
  readonly store: Store<Tx>;
  run(kind: RunKind, key: string, more?: OrderRun): Promise<RunResult>;
}

/** The business table. Nothing in it is unique: a second effect shows. */
export const EFFECT_TABLE =
  "CREATE TABLE effect (kind text NOT NULL, key text NOT NULL, amount int NOT NULL, pid int NOT NULL)";

const INSERT_EFFECT = "INSERT INTO effect (kind, key, amount, pid) VALUES ($1::text, $2::text, $3::int, $4::int)";

const SCOPE: Scope = { tenant: "acme", client: null };

/** Makes and starts one. */
export async function orders<Tx>(options: OrdersOptions<Tx>): Promise<Orders<Tx>> {
  const { driver, control } = options;
  const store = options.store ?? postgresStore(driver, control === undefined ? {} : { control });
  const once = createOncekey<Tx>({ store, waitMs: 20_000, onError: () => {}, ...options.once });
  const { kinds = RUN_KINDS } = options;
  const operations = new Map(kinds.map((kind) => [kind, DEFINE[kind](once, options)]));
  await once.start();
  const run = (kind: RunKind, key: string, { amount = 5, scope = SCOPE, waitMs, bound = false }: OrderRun = {}) => {
    const operation = operations.get(kind);
    if (operation === undefined) throw new Error(`These orders have no ${kind} operation.`);
    const order = { order: key, amount };
    const wait = waitMs === undefined ? {} : { waitMs };
    if (bound || kind === "capture") return runBound(operation, options, { order, scope, ...wait });
    return once.run(operation as Operation<"transaction">, { scope, key, input: { body: order }, ...wait });
  };
  return { once, store, run };
}

const DEFINE = { transaction: transactionOrders, phases: phasesOrders, capture: captureOrders };

function limits({ maxDurationMs, retentionMs }: Pick<OrdersOptions<never>, "maxDurationMs" | "retentionMs">) {
  return {
    ...(maxDurationMs === undefined ? {} : { maxDurationMs }),
    ...(retentionMs === undefined ? {} : { retentionMs }),
  };
}

function transactionOrders<Tx>(once: Oncekey<Tx>, options: OrdersOptions<Tx>): Operation<"transaction"> {
  return once.transaction({
    name: options.name ?? "orders.transaction",
    version: 1,
    ...limits(options),
    ...(options.lookUp === undefined ? {} : { lookUp: options.lookUp }),
    async run({ tx, input, send }) {
      const order = (input as { body: Order }).body;
      await effect(options.driver, "transaction", order, tx);
      if (options.sends !== false) await send("order.placed", { order: order.order });
      await options.at?.("transaction", order, tx);
      return receipt(order);
    },
  });
}

function phasesOrders<Tx>(once: Oncekey<Tx>, options: OrdersOptions<Tx>): Operation<"phases"> {
  return once.phases({
    name: options.name ?? "orders.phases",
    version: 1,
    ...limits(options),
    async run(op) {
      const order = (op.input as { body: Order }).body;
      await op.phase("placed", async ({ tx }) => {
        await effect(options.driver, "phases", order, tx);
        await options.at?.("phase", order, tx);
      });
      await options.at?.("between", order, undefined);
      return op.complete(async ({ tx, send }) => {
        await effect(options.driver, "settled", order, tx);
        if (options.sends !== false) await send("order.settled", { order: order.order });
        await options.at?.("complete", order, tx);
        return receipt(order);
      });
    },
  });
}

function captureOrders<Tx>(once: Oncekey<Tx>, options: OrdersOptions<Tx>): Operation<"capture"> {
  const { onStoreDown = "refuse", reconcile } = options;
  return once.capture({
    name: options.name ?? "orders.capture",
    version: 1,
    ...limits(options),
    onStoreDown,
    ...(reconcile === undefined ? {} : { reconcile }),
  });
}

/** Calls the engine as a binding does. */
async function runBound<Tx>(
  operation: Operation,
  { driver, at }: OrdersOptions<Tx>,
  { order, scope, waitMs = 20_000 }: { order: Order; scope: Scope; waitMs?: number },
): Promise<RunResult> {
  const { ring } = operation.engine;
  const payload = JSON.stringify(order);
  const proof: RequestProof = {
    compare: "wire",
    ring,
    wireDigest: ring.fingerprint(ring.form("wire"), ["bytes", payload]),
    fingerprint: async (form) => ring.fingerprint(form, [payload]),
  };
  const handler = async (): Promise<Outcome> => {
    await at?.("handling", order, undefined);
    await effect(driver, "capture", order);
    await at?.("capture", order, undefined);
    return answered(order);
  };
  const identity = identityOf(scope, operation.identityName, order.order);
  const result = await operation.engine.execute(operation, {
    identity,
    proof,
    input: async () => ({ body: order }),
    context: null,
    waitMs,
    handler,
  });
  return inMemory(result);
}

async function effect<Tx>(driver: Driver<Tx>, kind: string, { order, amount }: Order, tx?: Tx): Promise<void> {
  await driver.run(INSERT_EFFECT, [kind, order, amount, process.pid], tx);
}

/** The random part makes two executions give two answers. */
const receipt = ({ order, amount }: Order) => created(`/orders/${order}`, { order, amount, receipt: randomUUID() });

function answered({ order, amount }: Order): Outcome {
  const body = new TextEncoder().encode(JSON.stringify({ order, amount, receipt: randomUUID() }));
  return { status: 201, headers: [["content-type", "application/json"]], body };
}

/** What a client would see of a result: kind, or the whole stored answer. */
export function answerOf(result: RunResult): string {
  if (result.kind !== "completed" && result.kind !== "replayed") return result.kind;
  const { status, headers, body } = result.outcome;
  return `${status} ${JSON.stringify(headers)} ${Buffer.from(body).toString("latin1")}`;
}

/** How many of each kind of result there are. */
export function tally(results: readonly { readonly kind: string }[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const { kind } of results) counts[kind] = (counts[kind] ?? 0) + 1;
  return counts;
}
