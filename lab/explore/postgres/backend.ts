import type pg from "pg";
import type { Session, Store } from "../../../src/core/store.ts";
import type { Tables } from "../../../src/stores/memory/tables.ts";
import type { Backend, BackendTerms } from "../backend.ts";
import type { WorldTransaction } from "../world.ts";
import { CLOCK_SCHEMA, type House, houseStore, SEARCH_PATH } from "./house.ts";
import { processOf, type TrackedPool, type Traffic, trackedPool } from "./tracked.ts";

/** The server's own limit of how long anything here may take before a schedule is given up. */
const PATIENCE_MS = 10_000;
/** How long a statement may be under way before it is asked whether it waits for a lock. */
const LOOK_AFTER_MS = 4;

/** PostgreSQL as a backend. `mirror`: what the memory store holds at the same step, for the instants that time moves to. */
export function postgresBackend(house: House, mirror: () => Tables) {
  return ({ nowMs }: BackendTerms): PostgresBackend => {
    const traffic: Traffic = { underWay: new Map() };
    const pools = new Map<string, TrackedPool>();
    const backends = new WeakMap<WorldTransaction, number>();
    const moved = async () => {
      await house.observer.query(`UPDATE ${CLOCK_SCHEMA}.clock SET at = to_timestamp($1::float8 / 1000)`, [nowMs()]);
    };
    return {
      name: "postgres",
      connect(name) {
        const pool = trackedPool(traffic, {
          connectionString: house.url,
          max: 10,
          application_name: name,
          options: SEARCH_PATH,
        });
        pools.set(name, pool);
        return worldStore(pool.pool, backends);
      },
      quiet: () => quiet(house, traffic),
      moved,
      async cut(name, spared) {
        const gone = pools.get(name)?.cut(spared === null ? null : (backends.get(spared) ?? null)) ?? [];
        await untilGone(house, gone);
      },
      get tables() {
        return mirror();
      },
      async close() {
        await Promise.all([...pools.values()].map(({ pool }) => pool.end().catch(() => {})));
      },
    };
  };
}

/** A backend whose connections must be closed. */
export interface PostgresBackend extends Backend {
  close(): Promise<void>;
}

/** The real store, whose transactions are given to business code as worlds know them. */
function worldStore(pool: pg.Pool, backends: WeakMap<WorldTransaction, number>): Store<WorldTransaction> {
  const store = houseStore(pool);
  const clients = new WeakMap<WorldTransaction, pg.PoolClient>();
  const real = (tx: WorldTransaction) => clients.get(tx) as pg.PoolClient;
  const wrapped: Store<WorldTransaction> = Object.create(store);
  const own: Pick<Store<WorldTransaction>, "transaction" | "within" | "owns" | "send"> = {
    transaction: (body) =>
      store.transaction((session) => {
        const tx = worldTransaction(session.tx);
        clients.set(tx, session.tx);
        backends.set(tx, processOf(session.tx));
        return body({ ...session, tx });
      }),
    within(tx) {
      const inner = store.within(real(tx));
      const inside = (session: Session<pg.PoolClient>) => ({ ...session, tx }) as Session<WorldTransaction>;
      return { read: inner.read, transaction: (body) => inner.transaction((session) => body(inside(session))) };
    },
    owns: (tx, id, fence) => store.owns(real(tx), id, fence),
    send: (tx, message) => store.send(real(tx), message),
  };
  for (const [name, value] of Object.entries(own)) Object.defineProperty(wrapped, name, { value });
  return wrapped;
}

function worldTransaction(client: pg.PoolClient): WorldTransaction {
  return {
    async insert(table, row) {
      const text = `INSERT INTO ${CLOCK_SCHEMA}.business (name, content) VALUES ($1::text, $2::jsonb)`;
      await client.query({ text, values: [table, JSON.stringify(row)] });
    },
    async rows<Row extends object>(table: string) {
      const text = `SELECT content FROM ${CLOCK_SCHEMA}.business WHERE name = $1::text ORDER BY place`;
      const { rows } = await client.query<{ content: Row }>({ text, values: [table] });
      return rows.map(({ content }) => content);
    },
  };
}

/** Until nothing is under way, or all that is waits for a lock. */
async function quiet(house: House, { underWay }: Traffic): Promise<void> {
  const startedAtMs = performance.now();
  let calm = 0;
  for (let lookAtMs = startedAtMs + LOOK_AFTER_MS; calm < 3; ) {
    await new Promise((resolve) => setImmediate(resolve));
    calm = underWay.size === 0 ? calm + 1 : 0;
    if (calm > 0 || performance.now() < lookAtMs) continue;
    const processes = [...underWay.values()].map((backend) => backend());
    if (await allWait(house, processes)) return;
    if (performance.now() - startedAtMs > PATIENCE_MS)
      throw new Error("A statement neither ends nor waits for a lock.");
    lookAtMs = performance.now() + LOOK_AFTER_MS;
  }
}

/** Whether each of the server processes waits for a lock that another one holds. */
async function allWait({ observer }: House, processes: readonly number[]): Promise<boolean> {
  if (processes.some((pid) => pid === 0)) return false;
  const { rows } = await observer.query<{ waiting: number }>(
    `SELECT count(*)::int AS waiting FROM pg_stat_activity
     WHERE pid = ANY ($1::int[]) AND wait_event_type = 'Lock' AND pg_blocking_pids(pid) <> '{}'`,
    [processes],
  );
  return rows[0]?.waiting === new Set(processes).size;
}

/** A socket that is gone is noticed by its server process when it reads or writes: one that waits for a lock is told. */
async function untilGone({ observer }: House, processes: readonly number[]): Promise<void> {
  const endAtMs = performance.now() + PATIENCE_MS;
  for (;;) {
    const { rows } = await observer.query(
      "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid = ANY ($1::int[])",
      [processes],
    );
    if (rows.length === 0) return;
    if (performance.now() > endAtMs) throw new Error("The connections of a dead process do not end.");
  }
}
