import type { EntryState } from "../../../core/entry.ts";
import { idBytes } from "../../../core/identity.ts";
import type { SqlParameter, SqlRow } from "../driver-port.ts";
import { type InspectedEntry, inspectedEntry } from "../inspect.ts";
import { text } from "../rows.ts";
import { type ConsoleIndexName, type Offered, REFERENCE_SQL } from "./indexes.ts";
import type { Ask } from "./reading.ts";

/** Which entries are looked for; what is left out matches all. */
export interface EntrySearch {
  /** Only this tenant's. */
  readonly tenant?: string;
  readonly client?: string | null;
  readonly operation?: string;
  readonly state?: EntryState;
  /** As stored: raw, or digest and prefix. Any of these. */
  readonly keys?: readonly string[];
  /** Any of these, or (where there are two bounds) one between them. Hex. */
  readonly ids?: readonly string[];
  readonly idPrefix?: string;
  /** A permanent reference (docs/reference.md), as 32 bytes. */
  readonly reference?: Uint8Array;
  /** First claimed at this instant or later, in milliseconds since 1970. */
  readonly fromMs?: number;
  /** First claimed before it. */
  readonly toMs?: number;
}

/** A place in a list of entries. */
export interface EntryPlace {
  /** Microseconds since 1970, decimal digits. */
  readonly createdUs: string;
  readonly id: string;
}

/** One page of entries. */
export interface EntryPage {
  readonly entries: readonly InspectedEntry[];
  /** Where the next page begins; `null`: there is none. */
  readonly next: EntryPlace | null;
}

/** In which order, and from where on. */
export interface EntryOrder {
  readonly newestFirst: boolean;
  readonly after: EntryPlace | null;
  readonly limit: number;
}

/** The index that such a search needs and the store itself has not; `null`: one of the store's serves. */
export function neededIndex(search: EntrySearch): ConsoleIndexName | null {
  if (search.ids !== undefined || search.idPrefix !== undefined) return null;
  if (search.reference !== undefined) return "reference";
  if (search.keys !== undefined) return "key";
  if (search.state === "needs_recovery" || search.state === "in_progress") return null;
  if (search.tenant !== undefined) return "tenant";
  return search.operation === undefined ? "created" : "operation";
}

const COLUMNS = `id, tenant, client, operation, key, run_kind, operation_version, state, attempt, recovery_point, reason, status,
  outcome_gone, created_at, lease_until, not_before, completed_at, expires_at, tombstone_until, sweep_at, settles_at, correlation`;

const ms = (column: string) => `(extract(epoch FROM ${column}) * 1000)::float8 AS ${column}`;

const SHOWN = `encode(id, 'hex') AS id, tenant, client, operation, key, run_kind, operation_version, state, attempt,
  recovery_point, reason, status, outcome_gone, correlation,
  ${["created_at", "lease_until", "not_before", "completed_at", "expires_at", "tombstone_until", "sweep_at", "settles_at"].map(ms).join(", ")},
  (extract(epoch FROM created_at) * 1000000)::bigint::text AS created_us`;

const instantOf = (parameter: string) => `timestamptz 'epoch' + ${parameter}::bigint * interval '1 microsecond'`;

/** Conditions with their parameters, which are numbered in the order of their coming. */
class Conditions {
  readonly parameters: SqlParameter[] = [];
  readonly #texts: string[] = [];

  value(given: SqlParameter): string {
    return `$${this.parameters.push(given)}`;
  }

  add(condition: string): void {
    this.#texts.push(condition);
  }

  text(column: string, given: string | undefined): void {
    if (given !== undefined) this.add(`${column} = ${this.value(given)}::text`);
  }

  toString(): string {
    return this.#texts.length === 0 ? "true" : this.#texts.join(" AND ");
  }
}

function conditionsOf(search: EntrySearch, order: EntryOrder): Conditions {
  const where = new Conditions();
  const { ids, idPrefix, keys, client, reference, fromMs, toMs } = search;
  if (ids !== undefined) where.add(`id IN (${ids.map((id) => `${where.value(idBytes(id))}::bytea`).join(", ")})`);
  if (idPrefix !== undefined) {
    const [first, last] = ["0", "f"].map((fill) => where.value(idBytes(idPrefix.padEnd(64, fill))));
    where.add(`id BETWEEN ${first}::bytea AND ${last}::bytea`);
  }
  if (reference !== undefined) where.add(`${REFERENCE_SQL} = ${where.value(reference)}::bytea`);
  if (keys !== undefined) where.add(`key IN (${keys.map((key) => `${where.value(key)}::text`).join(", ")})`);
  where.text("tenant", search.tenant);
  where.text("operation", search.operation);
  if (client === null) where.add("client IS NULL");
  else where.text("client", client);
  // A word of ours: written out, so that the planner sees which partial index it bounds.
  if (search.state !== undefined) where.add(`state = '${search.state}'`);
  if (fromMs !== undefined) where.add(`created_at >= ${instantOf(where.value(`${fromMs * 1_000}`))}`);
  if (toMs !== undefined) where.add(`created_at < ${instantOf(where.value(`${toMs * 1_000}`))}`);
  if (order.after !== null) {
    const { createdUs, id } = order.after;
    const place = `(${instantOf(where.value(createdUs))}, ${where.value(idBytes(id))}::bytea)`;
    where.add(`(created_at, id) ${order.newestFirst ? "<" : ">"} ${place}`);
  }
  return where;
}

/**
 * One page of entries, wherever they lie. The caller has seen to it that an index serves ({@link neededIndex}). Raises as
 * `ask` does.
 */
export async function searchEntries(
  ask: Ask,
  { apart }: Pick<Offered, "apart">,
  search: EntrySearch,
  order: EntryOrder,
): Promise<EntryPage> {
  const where = conditionsOf(search, order);
  const direction = order.newestFirst ? "DESC" : "ASC";
  const tail = `ORDER BY created_at ${direction}, id ${direction} LIMIT ${where.value(order.limit + 1)}::int`;
  const from = (table: string, more: string) =>
    `(SELECT ${COLUMNS} FROM oncekey.${table} WHERE ${where}${more} ${tail})`;
  const isUnfinished = search.state !== undefined && search.state !== "succeeded" && search.state !== "failed";
  const tables = [from("entry", "")];
  if (apart && !isUnfinished) tables.push(from("outcome", " AND expires_at > statement_timestamp()"));
  const sql = `SELECT ${SHOWN} FROM (${tables.join(" UNION ALL ")}) AS entry ${orderOutside(direction)} LIMIT ${order.limit + 1}`;
  return paged(await ask({ sql }, where.parameters), order.limit);
}

// The column, not what is shown under its name.
const orderOutside = (direction: string) => `ORDER BY entry.created_at ${direction}, entry.id ${direction}`;

function paged(rows: readonly SqlRow[], limit: number): EntryPage {
  const shown = rows.slice(0, limit);
  const last = shown.at(-1);
  const next =
    rows.length > limit && last !== undefined ? { createdUs: text(last, "created_us"), id: text(last, "id") } : null;
  return { entries: shown.map(inspectedEntry), next };
}

/** The entry with that id (64 hex digits), if it is that tenant's (`null`: anybody's); `null`: there is none. Raises as `ask` does. */
export async function entryOf(
  ask: Ask,
  facts: Pick<Offered, "apart">,
  id: string,
  tenant: string | null,
): Promise<InspectedEntry | null> {
  const search = tenant === null ? { ids: [id] } : { ids: [id], tenant };
  const { entries } = await searchEntries(ask, facts, search, { newestFirst: true, after: null, limit: 1 });
  return entries[0] ?? null;
}
