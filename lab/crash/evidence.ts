import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { parseExact } from "../../examples/payments/exact-json.ts";
import type { LandedPayment, LedgerRecord } from "../../examples/payments/psp/ledger.ts";
import type { FaultTally } from "./driver.ts";
import { type Caller, type Histories, readHistories, type What } from "./history.ts";
import type { Delivered } from "./sink.ts";
import type { World } from "./world.ts";

/** A business row: what an operation has done. */
export interface EffectRow extends Caller {
  readonly what: What;
  readonly id: string;
  readonly key: string;
  /** Exact digits. */
  readonly amount: string;
  /** Of a refund: its charge. */
  readonly chargeId: string | null;
  readonly status: string;
  readonly authorization: string | null;
  readonly capture: string | null;
}

/** An entry as it is left. */
export interface EntryRow extends Caller {
  readonly id: string;
  readonly operation: string;
  readonly runKind: string;
  readonly key: string;
  readonly state: string;
  readonly reason: string | null;
  readonly attempt: number;
  /** Whether a sweeper will look at it again without anybody's help. */
  readonly swept: boolean;
}

/** An entry that was deleted, as the database itself has noted it. */
export interface DeletedRow {
  readonly id: string;
  readonly state: string;
  readonly attempt: number;
  /** Whether phases were recorded for it. */
  readonly recorded: boolean;
  /** Whether its retention was over. */
  readonly expired: boolean;
}

/** A key that came back once the retention of its outcome was over, as the database itself has noted it. */
export interface LateKey extends Caller {
  readonly what: What;
  readonly key: string;
}

/** A message of the outbox. */
export interface MessageRow {
  readonly id: string;
  readonly topic: string;
  readonly state: string;
}

/** One payment at the provider. */
export interface Payment {
  readonly kind: LandedPayment["kind"];
  readonly id: string;
  readonly status: string;
  readonly amount: string;
  /** Of a capture: the authorization that it captures. */
  readonly authorization: string | null;
}

/** Everything that the checks look at, read once everything has come to rest. Plain data: canaries plant into a copy. */
export interface Evidence extends Histories {
  readonly effects: readonly EffectRow[];
  readonly entries: readonly EntryRow[];
  readonly deleted: readonly DeletedRow[];
  /** New requests by contract, under old keys. */
  readonly late: readonly LateKey[];
  readonly messages: readonly MessageRow[];
  readonly deliveries: readonly Delivered[];
  readonly payments: readonly Payment[];
  /** What every process has written, by its name. */
  readonly logs: Readonly<Record<string, string>>;
  /** What stands in no log: tokens, secrets of deploys, the mark of bodies. Keys are those of the exchanges. */
  readonly secrets: readonly string[];
  readonly fallen: readonly string[];
  readonly faults: readonly FaultTally[];
  /** Faults that broke: the lab's own errors. */
  readonly broken: readonly string[];
}

const EFFECTS = `
  SELECT 'invoice' AS what, id, tenant, client, idempotency_key AS key, amount_minor::text AS amount, NULL AS "chargeId",
         status, NULL AS "authorization", NULL AS capture FROM invoices
  UNION ALL
  SELECT 'charge', id, tenant, client, idempotency_key, amount_minor::text, NULL, status, psp_authorization, psp_capture
  FROM charges
  UNION ALL
  SELECT 'refund', id, tenant, client, idempotency_key, amount_minor::text, charge_id, status, NULL, NULL FROM refunds`;
const ENTRIES = `
  SELECT encode(id, 'hex') AS id, tenant, client, operation, run_kind AS "runKind", key, state, reason, attempt,
         sweep_at IS NOT NULL AS swept
  FROM oncekey.entry`;
const DELETED = `
  SELECT id, state, attempt, recorded, coalesce(expires_at <= deleted_at, false) AS expired FROM lab.deleted_entry`;
const LATE = `
  SELECT DISTINCT tenant, client, regexp_replace(operation, 's[.]create$', '') AS what, key FROM lab.late_key`;
const MESSAGES = "SELECT id, topic, state FROM oncekey.outbox";

/** What the driver knows and nobody else. */
export type Witnessed = Pick<Evidence, "faults" | "broken" | "secrets">;

/** Reads it all. */
export async function collect(world: World, witnessed: Witnessed): Promise<Evidence> {
  const { dir, database, sink, crew } = world;
  const rows = async <Row extends object>(sql: string) => (await database.pool.query<Row>(sql)).rows;
  const logs = Object.fromEntries(filesIn(join(dir, "logs")).map((path) => [path, readFileSync(path, "utf8")]));
  return {
    ...readHistories(historiesIn(dir)),
    effects: await rows<EffectRow>(EFFECTS),
    entries: await rows<EntryRow>(ENTRIES),
    deleted: await rows<DeletedRow>(DELETED),
    late: await rows<LateKey>(LATE),
    messages: await rows<MessageRow>(MESSAGES),
    deliveries: [...sink.delivered],
    payments: readLedger(join(dir, "psp", "ledger.jsonl")).payments,
    logs: { ...logs, postgres: database.log() },
    fallen: [...crew.fallen],
    ...witnessed,
  };
}

/** The records of all client processes. */
export function historiesIn(dir: string): string[] {
  return filesIn(dir).filter((path) => path.endsWith(".jsonl"));
}

function filesIn(directory: string): string[] {
  const files = readdirSync(directory, { withFileTypes: true }).filter((one) => one.isFile());
  return files.map(({ name }) => join(directory, name));
}

/** What the provider has made, and how many calls it has accepted and not made yet. */
export function readLedger(path: string): { readonly payments: Payment[]; readonly pending: number } {
  const payments: Payment[] = [];
  const pending = new Set<string>();
  for (const line of readFileSync(path, "utf8").split("\n").slice(0, -1)) {
    const record = parseExact(line) as LedgerRecord;
    if (record.type === "accepted") pending.add(record.pending.id);
    else if ("pending" in record && record.pending !== undefined) pending.delete(record.pending);
    if (record.type === "landed") payments.push(paymentOf(record.payment));
  }
  return { payments, pending: pending.size };
}

function paymentOf({ kind, object, body }: LandedPayment): Payment {
  return {
    kind,
    id: String(object.id),
    status: String(object.status),
    amount: String(body.amount_minor),
    authorization: body.authorization === undefined ? null : String(body.authorization),
  };
}
