import pg from "pg";

/** What is under way on the connections of a schedule: from the sending of a statement until its answer. */
export interface Traffic {
  /** Statements under way, each with the server process that has it (0: a connection that is being made). */
  readonly underWay: Map<object, () => number>;
}

type AnyFunction = (...args: unknown[]) => unknown;

/** Calls something that counts as under way until its callback is called or its promise settles: `pg` has both forms. */
function counted({ underWay }: Traffic, backend: () => number, call: AnyFunction, args: readonly unknown[]): unknown {
  const mark = {};
  underWay.set(mark, backend);
  const over = () => void underWay.delete(mark);
  const last = args.at(-1);
  if (typeof last !== "function") return Promise.resolve(call(...args)).finally(over);
  const told: AnyFunction = (...given) => {
    over();
    return (last as AnyFunction)(...given);
  };
  return call(...args.slice(0, -1), told);
}

/** A pool for one process, whose every statement and connection is counted, and which can be cut. */
export interface TrackedPool {
  readonly pool: pg.Pool;
  /** Destroys the sockets, but for those of the server process `spared`. Gives the server processes that will end. */
  cut(spared: number | null): number[];
}

/** Makes one. `config` is what `pg` takes. */
export function trackedPool(traffic: Traffic, config: pg.PoolConfig): TrackedPool {
  class TrackedClient extends pg.Client {
    override query(...args: unknown[]): never {
      const call: AnyFunction = (...all) => (pg.Client.prototype.query as AnyFunction).apply(this, all);
      return counted(traffic, () => processOf(this), call, args) as never;
    }
  }
  const clients = new Set<pg.PoolClient>();
  const pool = new pg.Pool({ ...config, Client: TrackedClient } as pg.PoolConfig);
  pool.on("error", () => {});
  pool.on("connect", (client) => void clients.add(client));
  pool.on("remove", (client) => void clients.delete(client));
  const connect = pool.connect.bind(pool) as AnyFunction;
  Object.assign(pool, { connect: (...args: unknown[]) => counted(traffic, () => 0, connect, args) });
  return {
    pool,
    cut(spared) {
      const gone = [...clients].filter((client) => processOf(client) !== spared);
      for (const client of gone) {
        client.on("error", () => {});
        socketOf(client).destroy();
      }
      return gone.map(processOf);
    },
  };
}

/** The server process behind a client of `pg`; 0 before it is connected. */
export function processOf(client: object): number {
  return (client as { processID?: number | null }).processID ?? 0;
}

function socketOf(client: object): { destroy(): void } {
  return (client as { connection: { stream: { destroy(): void } } }).connection.stream;
}
