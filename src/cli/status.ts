import { storeStatus } from "../stores/postgres/index.ts";
import type { Command } from "./command.ts";
import { databaseOptions, withStore } from "./database.ts";
import { statusText } from "./status-text.ts";

/** `oncekey status`: what an operator looks at first. */
export const statusCommand: Command = {
  summary: "count entries by state, and what waits",
  about: `Shows the schema's version, entries by state, the oldest in progress, what waits for the sweeper, the purge, the
relay or a person, and the size of the tables. Of what needs recovery it shows operation, reason, when the sweeper asks
next, and a few ids, which resolve takes; of entries that are due, those that no running worker knows. Also the layout
and its partitions. Reads the whole table of entries.`,
  operands: [],
  options: databaseOptions,
  examples: ["DATABASE_URL=postgres://… oncekey status", "oncekey status --json"],
  run: (line) =>
    withStore(line, async (_store, database) => {
      const { schemaVersion, ...status } = await storeStatus(database.driver, { schema: database.schema });
      const schema = { name: database.schema, version: schemaVersion };
      return { exitCode: 0, data: { schema, ...status }, text: statusText(schema, status) };
    }),
};
