import type { Store } from "../core/store.ts";
import type { Command } from "./command.ts";
import { type CommandLine, UsageError } from "./command-line.ts";
import { databaseOptions, withStore } from "./database.ts";
import { PartlyDone } from "./failure.ts";
import { counted } from "./layout.ts";
import { withProgress } from "./progress.ts";

const DEFAULT_BATCH = 1_000;
const LARGEST_BATCH = 100_000;

/** `oncekey purge`: deletes entries whose retention is over. */
export const purgeCommand: Command = {
  summary: "delete entries whose retention is over",
  about: `Deletes every entry whose retention is over, with what was recorded for it; where a tombstone is kept, identity and
fingerprint stay until it ends. Entries that are not finished are never touched. Each batch is a commit of its own, so
that an interrupted purge keeps what it did; entries that somebody else holds at the moment are left to the next purge.
In the partitioned layout it looks after the partitions, too, if its role owns the tables.`,
  operands: [],
  options: {
    batch: { value: "N", meaning: "entries per commit, 1 to 100000; default: 1000" },
    ...databaseOptions,
  },
  examples: ["oncekey purge", "oncekey purge --batch 200 --json"],
  run(line) {
    const batch = batchOf(line);
    return withStore(line, async (store) => {
      const purged = await withProgress((tell) => purgeAll(store, batch, tell));
      await store.maintain();
      const text =
        purged === 0
          ? "No entry was past its retention; nothing was purged.\n"
          : `Purged ${counted(purged, "entry", "entries")} whose retention was over.\n`;
      return { exitCode: 0, data: { purged }, text };
    });
  },
};

function batchOf({ values }: CommandLine): number {
  const given = values.get("batch") ?? String(DEFAULT_BATCH);
  const batch = /^\d{1,6}$/.test(given) ? Number(given) : 0;
  if (batch >= 1 && batch <= LARGEST_BATCH) return batch;
  throw new UsageError(`--batch must be a whole number from 1 to ${LARGEST_BATCH}.`);
}

async function purgeAll(store: Store<unknown>, batch: number, tell: (what: string) => void): Promise<number> {
  let purged = 0;
  try {
    for (;;) {
      const count = await store.purge(batch);
      purged += count;
      tell(`${counted(purged, "entry", "entries")} purged`);
      // Less than a whole batch: nothing is left that could be had, since rows held by others do not count towards it.
      if (count < batch) return purged;
    }
  } catch (error) {
    if (purged === 0) throw error;
    throw new PartlyDone(`${counted(purged, "entry was", "entries were")} purged before.`, error);
  }
}
