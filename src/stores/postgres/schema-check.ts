import { OncekeyError } from "../../core/errors.ts";
import type { SqlRow } from "./driver-port.ts";
import { isolationRefused, sqlState } from "./errors.ts";
import { appliedMigrations, pendingMigrations, skew } from "./migrations.ts";
import type { StatementName } from "./statements.ts";

/** pg_current_xact_id() is the youngest thing that the statements need. */
const OLDEST_SERVER = 130_000;

type Run = (name: StatementName, parameters: readonly []) => Promise<readonly SqlRow[]>;

/**
 * Checks that the schema fits this version and that the server can keep the promises. Creates nothing. Raises
 * `oncekey_schema_missing`, `oncekey_schema_skew`, `oncekey_config_invalid`.
 */
export async function checkSchema(run: Run): Promise<void> {
  const rows = await run("schema_state", []).catch(raiseMissing);
  const pending = pendingMigrations(appliedMigrations(rows));
  if (pending.length > 0) {
    throw skew(
      `The database lacks ${pending.length} migration(s), from ${pending[0]?.number} (${pending[0]?.name}). Nothing was changed; run "oncekey migrate" or migrate() before starting this version.`,
    );
  }
  const problem = serverProblem(rows[0] ?? {});
  if (problem !== null) throw new OncekeyError("oncekey_config_invalid", problem);
  if ((await run("layout_fit", []).catch(raiseMissing))[0]?.unfit === true) throw isolationRefused();
}

function serverProblem(row: SqlRow): string | null {
  if (Number(row.server_version) < OLDEST_SERVER) {
    return "The server is older than PostgreSQL 13. Nothing was changed; upgrade it.";
  }
  if (row.in_recovery === true) {
    return "The connection leads to a read replica, where state is old and nothing can be claimed. Connect to the primary.";
  }
  if (row.encoding !== "UTF8") {
    return "The database's encoding is not UTF8, so that not every tenant and key could be stored. Use a UTF8 database.";
  }
  return null;
}

function raiseMissing(error: unknown): never {
  const state = sqlState(error);
  if (state === "42P01" || state === "3F000") {
    throw new OncekeyError(
      "oncekey_schema_missing",
      'The database has no Oncekey schema under the configured name. Nothing was created; run "oncekey migrate" or migrate().',
      { cause: error },
    );
  }
  if (state === "42501") {
    throw new OncekeyError(
      "oncekey_config_invalid",
      "The database role may not read the Oncekey schema. Grant it what printGrants() lists for its part.",
      { cause: error },
    );
  }
  throw error;
}
