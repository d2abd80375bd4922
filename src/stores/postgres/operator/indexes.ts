import type { Driver } from "../driver-port.ts";
import { ownFailure } from "../errors.ts";
import type { SchemaOptions } from "../migrate.ts";
import { boolean, text } from "../rows.ts";
import { checkSchemaName, DEFAULT_SCHEMA, inSchema } from "../statements.ts";
import type { Ask } from "./reading.ts";

/** An index that only the console reads: its name without `console_`, the table, and what it holds. */
interface ConsoleIndex {
  readonly table: "entry" | "outbox";
  readonly columns: string;
}

/** The pre-image of `entryReference` (its version, then both parts, each with its length), as SQL. */
export const REFERENCE_SQL =
  "sha256('\\x0101'::bytea || int4send(octet_length(id)) || id || '\\x01'::bytea || int4send(octet_length(fingerprint)) || fingerprint)";

const INDEXES = {
  created: { table: "entry", columns: "(created_at)" },
  tenant: { table: "entry", columns: "(tenant, created_at)" },
  operation: { table: "entry", columns: "(operation, created_at)" },
  key: { table: "entry", columns: "(key)" },
  reference: { table: "entry", columns: `((${REFERENCE_SQL}))` },
  sender: { table: "outbox", columns: "(entry_id) WHERE entry_id IS NOT NULL" },
} as const satisfies Record<string, ConsoleIndex>;

/** What a list is found by where no index of the store itself serves. */
export type ConsoleIndexName = keyof typeof INDEXES;

/** Every index of the console, by its name without `console_`. */
export const CONSOLE_INDEXES = Object.keys(INDEXES) as readonly ConsoleIndexName[];

/** What the database offers an operator's look. */
export interface Offered {
  readonly indexes: ReadonlySet<ConsoleIndexName>;
  /** Whether outcomes lie in partitions, too. */
  readonly apart: boolean;
  /** Whether this role may see the keys of outside calls. */
  readonly keys: boolean;
}

/** Which of the console's indexes are usable: on entries, and where there are partitions of outcomes also on these. */
export async function offered(ask: Ask): Promise<Offered> {
  const [row = {}] = await ask("console_indexes", []);
  const there = new Set(text(row, "names").split(" "));
  const apart = boolean(row, "apart");
  const isUsable = (name: ConsoleIndexName) => {
    const { table } = INDEXES[name];
    return (
      there.has(`console_${table}_${name}`) && (table === "outbox" || !apart || there.has(`console_outcome_${name}`))
    );
  };
  return { indexes: new Set(CONSOLE_INDEXES.filter(isUsable)), apart, keys: boolean(row, "keys") };
}

/** Options of {@link createConsoleIndexes}. */
export interface ConsoleIndexOptions extends SchemaOptions {
  /** Which ones. Default: all. */
  readonly only?: readonly ConsoleIndexName[];
  /** Told of each before it is made or dropped. */
  readonly tell?: (index: string) => void;
}

/**
 * Makes the indexes by which the console lists and searches, beside traffic (CONCURRENTLY), as the owner of the tables. One
 * that an interrupted run left half made is made anew. Each costs every later request a little (docs/console.md). Returns
 * how many were made. Raises `StoreFailure`, or the client's own error.
 */
export async function createConsoleIndexes<Tx>(driver: Driver<Tx>, options: ConsoleIndexOptions = {}): Promise<number> {
  let made = 0;
  const work = workOf(driver, options);
  for (const name of options.only ?? CONSOLE_INDEXES) {
    const { table, columns } = INDEXES[name];
    made += await work.index(`console_${table}_${name}`, table, columns);
    if (table === "entry") made += await createApart(work, name, columns);
  }
  return made;
}

/** Drops the indexes of {@link createConsoleIndexes}. Returns how many. Raises `StoreFailure`, or the client's own error. */
export async function dropConsoleIndexes<Tx>(driver: Driver<Tx>, options: ConsoleIndexOptions = {}): Promise<number> {
  let dropped = 0;
  const work = workOf(driver, options);
  for (const name of options.only ?? CONSOLE_INDEXES) {
    const { table } = INDEXES[name];
    dropped += await work.drop(`console_${table}_${name}`, true);
    // The partitions' own go with it, and PostgreSQL cannot drop those beside traffic: a lock of an instant on each.
    if (table === "entry") dropped += await work.drop(`console_outcome_${name}`, false);
  }
  return dropped;
}

/** A partitioned table takes no CONCURRENTLY: each partition's is made beside traffic, then all are hung below an empty one. */
async function createApart(work: IndexWork, name: ConsoleIndexName, columns: string): Promise<number> {
  const parent = `console_outcome_${name}`;
  if ((await work.state(parent)) === "usable") return 0;
  await work.run(`CREATE INDEX IF NOT EXISTS ${parent} ON ONLY oncekey.outcome ${columns}`);
  for (const partition of await work.partitionsWithout(parent)) {
    await work.index(`${partition}_${name}`, partition, columns);
    await work.run(`ALTER INDEX oncekey.${parent} ATTACH PARTITION oncekey.${partition}_${name}`);
  }
  return 1;
}

interface IndexWork {
  run(sql: string): Promise<readonly Readonly<Record<string, unknown>>[]>;
  state(index: string): Promise<"usable" | "broken" | "absent">;
  /** Partitions of outcomes on which no index hangs below that one yet: those made since have theirs. */
  partitionsWithout(index: string): Promise<readonly string[]>;
  /** Makes one that is not usable yet; gives how many it made. */
  index(index: string, table: string, columns: string): Promise<number>;
  /** Drops one that is there; gives how many it dropped. */
  drop(index: string, concurrently: boolean): Promise<number>;
}

function workOf<Tx>(driver: Driver<Tx>, { schema = DEFAULT_SCHEMA, tell = () => {} }: ConsoleIndexOptions): IndexWork {
  checkSchemaName(schema);
  const run: IndexWork["run"] = (sql) =>
    driver.run(inSchema(sql, schema), []).catch((error: unknown) => {
      throw ownFailure(error);
    });
  const state: IndexWork["state"] = async (index) => {
    const [row] = await run(
      `SELECT i.indisvalid AND i.indisready AS usable FROM pg_index AS i JOIN pg_class AS c ON c.oid = i.indexrelid
       WHERE c.relnamespace = 'oncekey'::regnamespace AND c.relname = '${index}'`,
    );
    if (row === undefined) return "absent";
    return row.usable === true ? "usable" : "broken";
  };
  return {
    run,
    state,
    partitionsWithout: async (index) =>
      (
        await run(
          `SELECT c.relname AS name
           FROM pg_partition_tree('oncekey.outcome'::regclass) AS part JOIN pg_class AS c ON c.oid = part.relid
           WHERE part.isleaf AND part.level > 0 AND NOT EXISTS (
             SELECT FROM pg_inherits AS h JOIN pg_index AS x ON x.indexrelid = h.inhrelid
             WHERE h.inhparent = 'oncekey.${index}'::regclass AND x.indrelid = part.relid)`,
        )
      ).map((row) => text(row, "name")),
    async index(index, table, columns) {
      const found = await state(index);
      if (found === "usable") return 0;
      tell(index);
      if (found === "broken") await run(`DROP INDEX CONCURRENTLY IF EXISTS oncekey.${index}`);
      await run(`CREATE INDEX CONCURRENTLY ${index} ON oncekey.${table} ${columns}`);
      return 1;
    },
    async drop(index, concurrently) {
      if ((await state(index)) === "absent") return 0;
      tell(index);
      await run(`DROP INDEX ${concurrently ? "CONCURRENTLY " : ""}IF EXISTS oncekey.${index}`);
      return 1;
    },
  };
}
