import { OncekeyError } from "../../core/errors.ts";
import { postgresStore, printMigrations } from "../../stores/postgres/index.ts";
import { type Check, type Finding, numberOf, seen, textOf, type View } from "./check.ts";

/** Whether the schema is there and fits this version. */
export const schemaCheck: Check = {
  name: "schema",
  needs: "server",
  async look(view) {
    const name = view.schema.replaceAll('"', "");
    const server = textOf((await view.sql("SELECT current_setting('server_version') AS version"))[0], "version");
    const applied = await newestMigration(view);
    const failure = await startFailure(view, name);
    const state = applied === null ? "not there" : `migration ${applied}`;
    return seen(`${name}, ${state}; PostgreSQL ${server}`, [failure ?? newer(name, applied)]);
  },
};

/** The number of the newest migration that was applied; `null` where there is no table of them. */
export async function newestMigration({ sql, schema }: View): Promise<number | null> {
  const [row] = await sql(`SELECT to_regclass('${schema}.migration') IS NOT NULL AS found`);
  if (row?.found !== true) return null;
  return numberOf((await sql(`SELECT max(number) AS number FROM ${schema}.migration`))[0], "number");
}

/** The words of what every process would be told at its start. */
async function startFailure({ driver }: View, schema: string): Promise<Finding | null> {
  try {
    await postgresStore(driver, { schema }).start();
    return null;
  } catch (error) {
    if (!(error instanceof OncekeyError)) throw error;
    const isOld = /run "oncekey migrate"/.test(error.message);
    return {
      severity: "error",
      what: error.message,
      why: `No process of this version starts on it (${error.code}).`,
      fix: isOld ? `oncekey migrate${schema === "oncekey" ? "" : ` --schema ${schema}`}` : "What the message says.",
    };
  }
}

function newer(schema: string, applied: number | null): Finding | null {
  const isKnown = applied === null || printMigrations({ schema, from: applied }) !== "";
  return isKnown
    ? null
    : {
        severity: "note",
        what: `The database has migration ${applied}, which this version does not know; it says that this version still fits.`,
        why: "What newer versions store, this one leaves alone; this command sees only what it knows.",
        fix: "Install the version of oncekey that the service will run.",
      };
}
