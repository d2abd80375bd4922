import { OncekeyError } from "../../core/errors.ts";
import type { Driver, SqlRow } from "./driver-port.ts";
import { isolationRefused, ownFailure, sqlState } from "./errors.ts";
import type { SchemaOptions } from "./migrate.ts";
import { addPartitions, changing, type InTransaction, PARTITIONS_AHEAD_MOST } from "./partitions.ts";
import { boolean, number, text } from "./rows.ts";
import { DEFAULT_SCHEMA, inSchema, statementRunner } from "./statements.ts";

/** Where outcomes lie: with their entries, or in partitions by the instant at which they may be forgotten. */
export type LayoutName = "plain" | "partitioned";

/** A partition of outcomes. */
export interface OutcomePartition {
  readonly name: string;
  /** It holds the outcomes that may be forgotten from here on … */
  readonly from: Date;
  /** … and before this: then it is dropped whole. */
  readonly to: Date;
  /** `pending`: being detached, or that was interrupted; `gone`: dropped, and not yet struck off. */
  readonly state: "attached" | "pending" | "detached" | "gone";
  /** On disk, with indexes and TOAST. */
  readonly bytes: number;
}

/** The layout as it is. */
export interface StoreLayout {
  readonly name: LayoutName;
  /** Whether outcomes may still lie in partitions: after the change back, until the last one is dropped. */
  readonly guarded: boolean;
  /** What one partition spans, in milliseconds. */
  readonly widthMs: number;
  /** The longest retention that partitions are made for, in milliseconds: what is kept longer stays with its entry. */
  readonly retentionMs: number;
  /** Up to when outcomes find a partition, or `null`: they find none. */
  readonly aheadUntil: Date | null;
  /** Whether partitions for that retention are missing: no maintainer runs, or none that owns the tables. */
  readonly behind: boolean;
  readonly partitions: readonly OutcomePartition[];
}

/** Options of {@link changeLayout}. */
export interface LayoutOptions extends SchemaOptions {
  /**
   * What one partition spans, in milliseconds: whole seconds. Look-ups read as many partitions as retention and width
   * make, so make it no shorter than half the retention. Default: as before, a day at first.
   */
  readonly widthMs?: number;
  /** The longest retention that partitions are made for, in milliseconds: whole seconds. Default: as before, a day at first. */
  readonly retentionMs?: number;
}

/** The layout together with what only its maintainer needs. */
export interface LayoutFacts extends StoreLayout {
  readonly now: number;
  /** Whether this role may change the tables. */
  readonly owned: boolean;
  readonly serverVersion: number;
  readonly isolation: string;
  /** Names of the partitions whose upper bound is past. */
  readonly expired: readonly string[];
}

/** DETACH … CONCURRENTLY, without which dropping a partition would stall every request. */
const OLDEST_SERVER = 140_000;

/** Reads the layout and its partitions. One statement. Raises `StoreFailure`. */
export async function storeLayout<Tx>(driver: Driver<Tx>, options: SchemaOptions = {}): Promise<StoreLayout> {
  const facts = await layoutFacts(driver, options.schema ?? DEFAULT_SCHEMA);
  const {
    now: _now,
    owned: _owned,
    serverVersion: _version,
    isolation: _isolation,
    expired: _expired,
    ...layout
  } = facts;
  return layout;
}

/** The layout for its maintainer. Raises `StoreFailure`. */
async function layoutFacts<Tx>(driver: Driver<Tx>, schema: string): Promise<LayoutFacts> {
  const rows = await statementRunner(driver, schema)("layout_state", []).catch(raiseOwn);
  const [first = {}] = rows;
  const placed = rows.filter(({ partition }) => partition !== null);
  const partitions = placed.map(partitionOf);
  const now = number(first, "now");
  const retentionMs = number(first, "retention_s") * 1_000;
  const attached = partitions.filter(({ state }) => state === "attached");
  const until = Math.max(0, ...attached.map(({ to }) => to.getTime()));
  const name = text(first, "name") as LayoutName;
  return {
    name,
    guarded: boolean(first, "guarded"),
    widthMs: number(first, "width_s") * 1_000,
    retentionMs,
    aheadUntil: until > now ? new Date(until) : null,
    behind: name === "partitioned" && until < now + retentionMs,
    partitions,
    now,
    owned: boolean(first, "owned"),
    serverVersion: number(first, "server_version"),
    isolation: text(first, "isolation"),
    expired: placed.filter((row) => boolean(row, "expired")).map((row) => text(row, "partition")),
  };
}

function partitionOf(row: SqlRow): OutcomePartition {
  return {
    name: text(row, "partition"),
    from: new Date(number(row, "from_at")),
    to: new Date(number(row, "to_at")),
    state: text(row, "state") as OutcomePartition["state"],
    bytes: number(row, "bytes"),
  };
}

/**
 * Changes the layout while traffic runs, in one commit: what is stored stays where it is, and every look-up finds it. The
 * change to `partitioned` makes the first partitions, waits for open writes on entries for a moment at a time, and from then
 * on refuses releases that do not know partitions; deploy this one everywhere first. Needs the role that owns the tables,
 * PostgreSQL 14, and READ COMMITTED. Raises `oncekey_config_invalid` for anything of that, and `StoreFailure`.
 */
export async function changeLayout<Tx>(
  driver: Driver<Tx>,
  to: LayoutName,
  options: LayoutOptions = {},
): Promise<StoreLayout> {
  const schema = options.schema ?? DEFAULT_SCHEMA;
  const facts = await layoutFacts(driver, schema);
  const width = seconds("widthMs", options.widthMs);
  const retention = seconds("retentionMs", options.retentionMs);
  const apart = to === "partitioned";
  if (!facts.owned) throw refused("only the role that owns the tables may change it. Run it as that role");
  if (apart)
    checkFit({
      ...facts,
      ...(width && { widthMs: width * 1_000 }),
      ...(retention && { retentionMs: retention * 1_000 }),
    });
  await changing(driver, schema, async (change) => {
    await change.run("layout_set", [to, width, retention]);
    if (apart) await openPartitions(change, schema);
  });
  return storeLayout(driver, { schema });
}

/** The first partitions, then the guard: its lock is held the shortest, and taken once everything else is done. */
async function openPartitions(change: InTransaction, schema: string): Promise<void> {
  const rows = await change.run("layout_state", []);
  await addPartitions(change, schema, rows);
  await change.run("layout_readers", [4]);
  await change.ddl(inSchema("ALTER TABLE oncekey.entry ENABLE TRIGGER entry_one", schema));
}

function checkFit({ serverVersion, isolation, widthMs, retentionMs }: LayoutFacts): void {
  if (serverVersion < OLDEST_SERVER) throw refused("the partitioned layout needs PostgreSQL 14 or later. Upgrade it");
  if (isolation !== "read committed") throw isolationRefused();
  if (retentionMs / widthMs > PARTITIONS_AHEAD_MOST) {
    throw refused(`that retention and width make more than ${PARTITIONS_AHEAD_MOST} partitions. Make them wider`);
  }
}

function seconds(name: string, ms: number | undefined): number | null {
  if (ms === undefined) return null;
  if (Number.isInteger(ms / 1_000) && ms >= 1_000 && ms / 1_000 < 2 ** 31) return ms / 1_000;
  throw refused(`${name} is whole seconds, in milliseconds, at least one. Correct it`);
}

function refused(why: string): OncekeyError {
  return new OncekeyError("oncekey_config_invalid", `The layout was not changed: ${why}.`);
}

function raiseOwn(error: unknown): never {
  if (sqlState(error) !== "42P01") throw ownFailure(error);
  throw new OncekeyError(
    "oncekey_schema_skew",
    'The database has no table of layouts yet. Nothing was changed; run "oncekey migrate" or migrate().',
    { cause: error },
  );
}
