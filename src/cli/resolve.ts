import { cipherOf } from "../core/cipher.ts";
import { plainOutcome } from "../core/described-outcome.ts";
import { systemRandom } from "../core/random.ts";
import {
  DECIDED_RETENTION_MS,
  DECISION_FENCE_LENGTH,
  type Resolution,
  sealedResolution,
  type Verdict,
} from "../core/resolution.ts";
import { entriesById, type InspectedEntry } from "../stores/postgres/index.ts";
import { accountName } from "./account.ts";
import type { Command } from "./command.ts";
import { type CommandLine, UsageError } from "./command-line.ts";
import { type Database, databaseOptions, withStore } from "./database.ts";
import { givenDuration, givenText } from "./given.ts";
import { givenKeys, keyOptions } from "./keys.ts";
import { outcomeOf } from "./outcome-file.ts";
import { absentReport, resolvedReport } from "./resolve-text.ts";

const LONGEST_BY = 255;
const LONGEST_NOTE = 2_000;

/** `oncekey resolve <id>`: an operator's decision about an entry. */
export const resolveCommand: Command = {
  summary: "decide what became of an entry",
  about: `Settles one entry by hand: with the outcome that every retry gets from now on, or given back, so that the next
retry goes on with it (and, where the operation is resumed, the sweeper). The id is that of inspect or status, or its
first 8 digits or more. Inspect it, then look at the other side, then decide: --attempt is what inspect showed, and an
entry that was attempted again since is refused. It also refuses while the owner is at work, or while something that was
sent may still land; --force overrides the last only. Who, when and why is kept for the audit, which inspect shows.

The file holds { "status", "headers", "body" or "bodyBase64" }; the status is 200 to 399 with --succeeded, 400 to 599
with --failed. Ends with 3 where there is no such entry, with 4 where it was refused.`,
  operands: ["id"],
  options: {
    succeeded: { value: "FILE", meaning: "it was done: the answer is in this JSON file" },
    failed: { value: "FILE", meaning: "it was not done and never will be: the refusal is in this JSON file" },
    release: { meaning: "give it back: the next retry goes on from its recovery point" },
    attempt: { value: "N", meaning: "the attempt that inspect showed before you looked; must be given with --failed" },
    force: { meaning: "decide although something sent may still land: you know that it will not" },
    by: { value: "NAME", meaning: "who decides, for the audit; default: your account's name" },
    note: { value: "TEXT", meaning: "why, for the audit" },
    retention: { value: "DURATION", meaning: "how long the outcome is replayed; default: 24h" },
    tombstone: { value: "DURATION", meaning: "how much longer late retries are refused; default: not at all" },
    ...keyOptions,
    ...databaseOptions,
  },
  examples: [
    'oncekey resolve 5f0c9a1e --succeeded answer.json --note "found at the provider, ticket 4711"',
    "oncekey resolve 5f0c9a1e --failed refusal.json --attempt 7 --by ada --json",
    "oncekey resolve 5f0c9a1e --release",
  ],
  async run(line) {
    const prefix = idPrefix(line.operands[0] ?? "");
    const resolution = await resolutionOf(line);
    const cipher = cipherOf(await givenKeys(line, process.env));
    return withStore(line, async (store, database) => {
      const entry = await theEntry(database, prefix);
      if (entry === null) return absentReport(prefix);
      const id = Buffer.from(entry.id, "hex");
      const resolved = await store.resolve(id, sealedResolution(cipher, id, resolution));
      return resolvedReport(entry, resolution, resolved);
    });
  },
};

function idPrefix(given: string): string {
  const prefix = given.toLowerCase();
  if (/^[0-9a-f]{8,64}$/.test(prefix)) return prefix;
  throw new UsageError("The id must be 64 hex digits, or at least the first 8 of them, as inspect shows it.");
}

async function theEntry({ driver, schema }: Database, prefix: string): Promise<InspectedEntry | null> {
  const [entry, another] = await entriesById(driver, prefix, { schema });
  if (another === undefined) return entry ?? null;
  throw new UsageError("More than one entry has an id that begins so. Nothing was changed; give more digits of it.");
}

async function resolutionOf(line: CommandLine): Promise<Resolution> {
  const verdict = await verdictOf(line);
  const by = (givenText(line, "by", LONGEST_BY) ?? accountName()).trim();
  if (by === "") throw new UsageError("--by must name somebody.");
  return {
    ...verdict,
    attempt: attemptOf(line, verdict),
    force: line.switches.has("force"),
    by,
    note: givenText(line, "note", LONGEST_NOTE) ?? null,
    fence: systemRandom.bytes(DECISION_FENCE_LENGTH),
  };
}

/** What was found stays found. What was not done may have been done by an attempt since. */
function attemptOf({ values }: CommandLine, { verdict }: Verdict): number | null {
  const given = values.get("attempt");
  if (given !== undefined && !/^[1-9]\d{0,8}$/.test(given))
    throw new UsageError("--attempt must be a whole number from 1.");
  if (given === undefined && verdict === "failed") {
    throw new UsageError(
      "--failed needs --attempt N, as inspect showed it before you looked at the other side: a later attempt may have done it. Nothing was changed.",
    );
  }
  return given === undefined ? null : Number(given);
}

async function verdictOf(line: CommandLine): Promise<Verdict> {
  const { values, switches } = line;
  const given = (["succeeded", "failed"] as const).filter((state) => values.has(state));
  const [state, ...others] = given;
  if (given.length + (switches.has("release") ? 1 : 0) !== 1 || others.length > 0) {
    throw new UsageError("Exactly one of --succeeded FILE, --failed FILE and --release must be given.");
  }
  const retentionMs = givenDuration(line, "retention");
  const tombstoneMs = givenDuration(line, "tombstone");
  if (state === undefined) {
    if (retentionMs === undefined && tombstoneMs === undefined) return { verdict: "released", completion: null };
    throw new UsageError("--retention and --tombstone belong to an outcome; --release stores none.");
  }
  const outcome = await outcomeOf(values.get(state) ?? "", state);
  const kept = { retentionMs: retentionMs ?? DECIDED_RETENTION_MS, tombstoneMs: tombstoneMs ?? 0 };
  return { verdict: state, completion: { outcome: plainOutcome(outcome), ...kept } };
}
