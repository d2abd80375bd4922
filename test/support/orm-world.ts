import { randomUUID } from "node:crypto";
import { createOncekey, ok, type RunResult, reject } from "oncekey";
import { fromPg } from "oncekey/drivers/pg";
import { type Driver, postgresStore } from "oncekey/postgres";
import { cuttingProxy } from "./cutting-proxy.ts";
import { atEnd, createDatabase, query, sharedServer, testPool } from "./postgres.ts";

/** The business tables of {@link ormSuite}: `booking` takes any row twice, `seat` has its `id` as primary key. */
export type OrmTable = "booking" | "seat";

/** What an ORM brings: its driver, and business writes by its own methods (never through `driver.run`). */
export interface Orm<Tx> {
  readonly driver: Driver<Tx>;
  /** Inserts one row with that `id`, through the transaction. */
  insert(tx: Tx, table: OrmTable, id: string): Promise<unknown>;
  /** Runs SQL without parameters on the transaction, by the client's own raw form. */
  execute(tx: Tx, sql: string): Promise<unknown>;
  /**
   * Opens a nested transaction (savepoint) the way business code would, and lets its body's error pass. Where the library
   * has none, the call that people would try: it must be refused, and `refusal` says by which words.
   */
  nested(tx: Tx, body: (inner: Tx) => Promise<void>): Promise<unknown>;
  /** What the library says where it has no nested transactions; default: they work. */
  readonly refusal?: RegExp;
  /** Ends its connections. */
  close(): Promise<void>;
}

const TABLES = [
  // An ORM that needs a primary key finds `number`.
  "CREATE TABLE booking (number int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, id text NOT NULL)",
  "CREATE TABLE seat (id text PRIMARY KEY)",
  // A booking named after a SQLSTATE fails with it, twice; the sequence is not rolled back with what drew from it.
  "CREATE SEQUENCE tried",
  `CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
      IF nextval('tried') % 3 <> 0 THEN
        RAISE EXCEPTION 'refused' USING ERRCODE = split_part(NEW.id, ' ', 2);
      END IF;
      RETURN NEW;
    END $$`,
  "CREATE TRIGGER refuse BEFORE INSERT ON booking FOR EACH ROW WHEN (NEW.id LIKE 'refuse %') EXECUTE FUNCTION refuse()",
];

const SCOPE = { tenant: "acme", client: null };
const CONNECTIONS = 8;
const INSTANCES = 5;

/** Called inside the operation after the key was booked. */
export type Hook = (tx: unknown, key: string) => Promise<unknown>;

/** Everything that a case needs. */
export interface OrmWorld {
  readonly orm: Orm<unknown>;
  /** Runs the operation: it books the key through the ORM, then calls the hook. */
  run(key: string, hook?: Hook): Promise<RunResult>;
  /** The same, with a refusal for its outcome. */
  refuse(key: string): Promise<RunResult>;
  /** The same on one of several instances that share the pool. */
  runOn(instance: number, key: string): Promise<RunResult>;
  /** How many committed rows of a business table have that id. */
  rows(table: OrmTable, id: string): Promise<number>;
  /** The states of the entries stored under a key. */
  states(key: string): Promise<unknown[]>;
  /** Runs SQL on another connection, past the ORM, in a commit of its own. */
  admin(sql: string): Promise<Record<string, unknown>[]>;
  /** The next COMMIT is carried out and its answer lost, with the connection. */
  loseNextCommitAnswer(): void;
}

/** Makes one: a database of its own behind a proxy, the ORM's driver, and some instances on it. */
export async function ormWorld(make: (url: string, connections: number) => Promise<Orm<unknown>>): Promise<OrmWorld> {
  const { url } = await createDatabase();
  await query(url, ...TABLES);
  const { port } = await sharedServer();
  const proxy = await cuttingProxy(port);
  atEnd(() => proxy.close());
  const orm = await make(url.replace(`:${port}/`, `:${proxy.port}/`), CONNECTIONS);
  const pool = testPool(url, { max: 3 });
  const runs = await instances(orm, fromPg(pool) as Driver<unknown>);
  const admin = async (sql: string, values: unknown[] = []) => (await pool.query(sql, values)).rows;
  return {
    orm,
    run: runs[0] as Run,
    refuse: (key) => (runs[0] as Run)(key, undefined, true),
    runOn: (instance, key) => (runs[instance % INSTANCES] as Run)(key),
    rows: async (table, id) => (await admin(`SELECT FROM ${table} WHERE id = $1`, [id])).length,
    states: async (key) =>
      (await admin("SELECT state FROM oncekey.entry WHERE key = $1", [key])).map(({ state }) => state),
    admin: (sql) => admin(sql),
    loseNextCommitAnswer: () => proxy.loseNextCommitAnswer(),
  };
}

interface Booking {
  readonly key: string;
  readonly refused: boolean;
}

type Run = (key: string, hook?: Hook, refused?: boolean) => Promise<RunResult>;

async function instances(orm: Orm<unknown>, control: Driver<unknown>): Promise<Run[]> {
  // One store, so that its turns hold all instances to the pool's size; a second pool where nobody knows that.
  const store = postgresStore(orm.driver, orm.driver.connections === null ? { control } : {});
  const hooks = new Map<string, Hook>();
  const runs = Array.from({ length: INSTANCES }, async (): Promise<Run> => {
    const once = createOncekey({ store, waitMs: 30_000, maxWaitersPerKey: 1_000, onError: () => {} });
    const operation = once.transaction({
      name: "bookings.create",
      version: 1,
      async run({ tx, input }) {
        const { key, refused } = (input as { body: Booking }).body;
        await orm.insert(tx, "booking", key);
        await hooks.get(key)?.(tx, key);
        return refused ? reject(422, { code: "limit_reached" }) : ok({ key, receipt: randomUUID() });
      },
    });
    await once.start();
    return (key, hook, refused = false) => {
      if (hook !== undefined) hooks.set(key, hook);
      return once.run(operation, { scope: SCOPE, key, input: { body: { key, refused } } });
    };
  });
  return Promise.all(runs);
}

/** A hook that fails so often, and does nothing from then on. */
export function times(count: number, hook: Hook): Hook {
  let left = count;
  return async (tx, key) => (left-- > 0 ? hook(tx, key) : undefined);
}

/** What a client would see of a result: its kind, or the whole stored answer. */
export function answerOf(result: RunResult): string {
  if (result.kind !== "completed" && result.kind !== "replayed") return result.kind;
  return `${result.outcome.status} ${Buffer.from(result.outcome.body).toString()}`;
}
