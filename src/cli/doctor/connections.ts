import { grouped } from "../layout.ts";
import { type Check, type Finding, type Given, numberOf, seen } from "./check.ts";

/** A share of the server's connections beyond which the next deploy may find none. */
const CROWDED = 0.8;

/** Whether the pools fit the server, and the concurrency the pools. */
export const connectionsCheck: Check = {
  name: "connections",
  needs: "server",
  async look({ sql, given }) {
    const [row] = await sql(`
      SELECT current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int
          - coalesce(current_setting('reserved_connections', true)::int, 0) AS most,
        (SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend')::text AS used`);
    const [most, used] = [numberOf(row, "most"), numberOf(row, "used")];
    const pools = given.pool === null ? "" : `; ${given.processes} x ${given.pool} in pools`;
    return seen(`${grouped(used)} of ${grouped(most)} in use${pools}`, [
      crowded(used, most),
      tooMany(given, most),
      lonely(given),
      starved(given),
    ]);
  },
};

function crowded(used: number, most: number): Finding | null {
  if (used < most * CROWDED) return null;
  return {
    severity: "warning",
    what: `${grouped(used)} of the server's ${grouped(most)} connections for ordinary roles are in use.`,
    why: "When none is left, requests end in 503 and nothing runs (fail closed).",
    fix: "Smaller pools, a pooler in transaction mode, or a higher max_connections.",
  };
}

function tooMany({ pool, processes }: Given, most: number): Finding | null {
  if (pool === null || pool * processes <= most) return null;
  return {
    severity: "error",
    what: `${processes} processes with ${pool} connections each may open ${grouped(pool * processes)}; the server has ${grouped(most)} for ordinary roles.`,
    why: "Under load some processes get no connection, and answer 503.",
    fix: `Pools of at most ${Math.max(1, Math.floor(most / processes))}, a pooler in transaction mode, or a higher max_connections.`,
  };
}

function lonely({ pool }: Given): Finding | null {
  if (pool !== 1) return null;
  return {
    severity: "warning",
    what: "The pool has one connection.",
    why: "While a transaction holds it, no lease can be renewed and no replay be answered.",
    fix: "A pool of at least two connections.",
  };
}

/** One connection is left to look-ups and renewals (docs/postgres.md, Connections). */
function starved({ pool, concurrency }: Given): Finding | null {
  if (pool === null || concurrency === null || concurrency <= Math.max(1, pool - 1)) return null;
  const atOnce = Math.max(1, pool - 1);
  return {
    severity: "warning",
    what: `Of ${concurrency} requests at once, ${atOnce} have a transaction; ${concurrency - atOnce} wait for a connection.`,
    why: "Their waiting counts as the request's time; past the pool's own time limit they end in 503.",
    fix: `A pool of ${concurrency + 1}, or fewer requests at once in a process.`,
  };
}
