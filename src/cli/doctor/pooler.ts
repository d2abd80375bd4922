import { type Check, type Finding, NotLooked, seen } from "./check.ts";

/** What a client is told by a pooler that gives out a connection for one statement only. */
const STATEMENT_MODE = /statement pooling/i;

/** Whether an error says that the pooler knows no transactions. */
export function isStatementMode(error: unknown): boolean {
  return STATEMENT_MODE.test(String((error as { message?: unknown } | null)?.message ?? ""));
}

/** The finding for such a pooler; nothing else can be looked at through it. */
export const statementMode: Finding = {
  severity: "error",
  what: "A pooler in statement mode stands between: it refuses transactions.",
  why: "Business rows and outcome cannot be committed together. Nothing can run.",
  fix: "pool_mode = transaction (PgBouncer)",
};

/** Whether a pooler stands between, and in which mode. */
export const poolerCheck: Check = {
  name: "pooler",
  needs: "server",
  async look(view) {
    await view.sql("SELECT 1");
    const first = view.pids();
    if (first === null || first.client === null) {
      throw new NotLooked("this database client does not show which server process it was promised; with pg it does");
    }
    // The server tells its own process when a connection begins; a pooler tells one that it made up.
    if (first.client === first.server) return seen("none: the connection leads straight to the server");
    // While the first client is still connected: a server process that serves another one too is shared.
    const second = await view.beside(async (other) => {
      await other.sql("SELECT 1");
      return other.pids();
    });
    const isShared = second?.server === first.server;
    return seen(isShared ? "there is one, in transaction mode" : "there is one", [behindPooler(isShared)]);
  },
};

function behindPooler(isShared: boolean): Finding {
  const what = isShared
    ? "A pooler in transaction mode stands between: one server process served two clients."
    : "A pooler stands between. No server process was shared in this look: session mode, or a pool with others to give.";
  return {
    severity: "note",
    what,
    why: isShared
      ? "Oncekey works through it. Named statements do not, unless the pooler keeps them."
      : "Oncekey works through both. In session mode each client holds a server connection; in transaction mode named statements need a pooler that keeps them.",
    fix: "Leave `named` out of the driver's options, or set max_prepared_statements (PgBouncer 1.21 and later).",
  };
}
