import { type RotateOptions, rotateStored } from "../stores/postgres/index.ts";
import type { Command } from "./command.ts";
import type { CommandLine } from "./command-line.ts";
import { counting, type Database, databaseOptions, withStore } from "./database.ts";
import { PartlyDone } from "./failure.ts";
import { givenCount, givenDuration } from "./given.ts";
import { keyOptions, neededKeys } from "./keys.ts";
import { withProgress } from "./progress.ts";
import { rotateText } from "./rotate-text.ts";

const MOST_BATCH = 10_000;

/** `oncekey rotate`: everything that is sealed, under the newest key. */
export const rotateCommand: Command = {
  summary: "seal what is stored under the newest encryption key",
  about: `Seals anew, under the first key of the ring, what is sealed under another one: inputs, contexts, outcomes, recorded
values, messages, values of deliveries. Runs beside traffic, in batches that are commits of their own; stopped in
the middle, it goes on when it is run again. Every process must have the newest key first in its ring before. In the
end it tells how many values there are under each key: one that has none left can be taken out of the ring.

The keys are those of encryptionKeys, newest first, as <id>:<base64> with commas between them, in the environment
variable ONCEKEY_ENCRYPTION_KEYS or in a file. Ends with 5 where values are left under other keys, also with --dry-
run.`,
  operands: [],
  options: {
    ...keyOptions,
    "seal-plain": { meaning: "also seal what is stored plainly, from before there were keys" },
    "dry-run": { meaning: "only count what there is under each key" },
    batch: { value: "N", meaning: "rows per commit, 1 to 10000; default: 200" },
    pause: { value: "DURATION", meaning: "rest between two commits; default: none" },
    ...databaseOptions,
  },
  examples: ["oncekey rotate --dry-run", "oncekey rotate --keys-file /run/secrets/oncekey-keys --pause 50ms"],
  async run(line) {
    const options = await optionsOf(line);
    return withStore(line, async (_store, { driver, schema }) => {
      const result = await withProgress((tell) => rotated(counting({ driver, schema }, tell), options));
      const isLeft = result.underOtherKeys > 0 || (options.sealPlain === true && result.plain > 0);
      return { exitCode: isLeft ? 5 : 0, data: result, text: rotateText(result, options.sealPlain === true) };
    });
  },
};

async function optionsOf(line: CommandLine): Promise<RotateOptions> {
  const batch = givenCount(line, "batch", MOST_BATCH);
  const pauseMs = givenDuration(line, "pause");
  return {
    encryptionKeys: await neededKeys(line, process.env),
    sealPlain: line.switches.has("seal-plain"),
    dryRun: line.switches.has("dry-run"),
    ...(batch === undefined ? {} : { batch }),
    ...(pauseMs === undefined ? {} : { pauseMs }),
  };
}

async function rotated({ driver, schema }: Database, options: RotateOptions) {
  try {
    return await rotateStored(driver, { ...options, schema });
  } catch (error) {
    if (options.dryRun === true) throw error;
    throw new PartlyDone("What was sealed anew before stays so; run it again and it goes on.", error);
  }
}
