import { type EraseOptions, type EraseResult, type EraseSelection, eraseContent } from "../stores/postgres/index.ts";
import type { Command, Report } from "./command.ts";
import { type CommandLine, UsageError } from "./command-line.ts";
import { counting, type Database, databaseOptions, withStore } from "./database.ts";
import { eraseText } from "./erase-text.ts";
import { PartlyDone } from "./failure.ts";
import { givenCount, givenDuration, givenText } from "./given.ts";
import { withProgress } from "./progress.ts";

const LONGEST_PART = 255;
const LONGEST_KEY = 1_024;
const MOST_BATCH = 100_000;

/** `oncekey erase --tenant T`: forgets what is stored of a tenant, and not that it was done. */
export const eraseCommand: Command = {
  summary: "erase what is stored of a tenant, client or key",
  about: `Erases the content that is stored for a tenant, or a part of it: of finished entries the outcome (status apart),
input, context, recorded values, what ties it to logs, and the key itself (a digest stays); messages that were
delivered or given up; for a whole tenant what handlers gave for deliveries. Identity and fingerprint stay: until
its retention ends, a retry is refused (idempotency_response_unavailable) and never runs again. Bodies outside of
the database go on the list of those that the sweeper removes.

Without --apply it only counts. Entries that are not finished and messages that are still to be delivered are left
and counted, since what is stored is needed to finish them: it then ends with 5. Ends with 3 where nothing is
stored.`,
  operands: [],
  options: {
    tenant: { value: "TENANT", meaning: "whose; always needed" },
    client: { value: "CLIENT", meaning: "only this client's" },
    operation: { value: "NAME", meaning: "only this operation's" },
    key: { value: "KEY", meaning: "only this key's" },
    apply: { meaning: "erase; nothing brings it back" },
    tombstone: { value: "DURATION", meaning: "refuse late retries for at least so long after retention" },
    batch: { value: "N", meaning: "rows per commit, 1 to 100000; default: 1000" },
    ...databaseOptions,
  },
  examples: ["oncekey erase --tenant acme", "oncekey erase --tenant acme --client app --apply --tombstone 365d"],
  run(line) {
    const selection = selectionOf(line);
    const options = optionsOf(line);
    return withStore(line, async (_store, database) =>
      reported(await withProgress((tell) => erased(counting(database, tell), selection, options))),
    );
  },
};

function selectionOf(line: CommandLine): EraseSelection {
  const tenant = givenText(line, "tenant", LONGEST_PART);
  const client = givenText(line, "client", LONGEST_PART);
  const operation = givenText(line, "operation", LONGEST_PART);
  const key = givenText(line, "key", LONGEST_KEY);
  if (tenant === undefined) throw new UsageError("--tenant is missing: whose content is to be erased must be said.");
  return {
    tenant,
    ...(client === undefined ? {} : { client }),
    ...(operation === undefined ? {} : { operation }),
    ...(key === undefined ? {} : { key }),
  };
}

function optionsOf(line: CommandLine): EraseOptions {
  const batch = givenCount(line, "batch", MOST_BATCH);
  const tombstoneMs = givenDuration(line, "tombstone");
  return {
    dryRun: !line.switches.has("apply"),
    ...(batch === undefined ? {} : { batch }),
    ...(tombstoneMs === undefined ? {} : { tombstoneMs }),
  };
}

async function erased({ driver, schema }: Database, selection: EraseSelection, options: EraseOptions) {
  try {
    return await eraseContent(driver, selection, { ...options, schema });
  } catch (error) {
    if (options.dryRun === true) throw error;
    throw new PartlyDone("What was erased before stays so; run it again and it goes on.", error);
  }
}

const EXIT_CODES: Readonly<Record<EraseResult["kind"], Report["exitCode"]>> = {
  absent: 3,
  planned: 0,
  erased: 0,
  partly: 5,
};

function reported(result: EraseResult): Report {
  return { exitCode: EXIT_CODES[result.kind], data: result, text: eraseText(result) };
}
