import { type Decision, settlesIn, type Verdict } from "../../../src/core/resolution.ts";
import { encodeContent } from "../../../src/core/stored-outcome.ts";
import type { Deploy, Process, Service, World } from "../world.ts";
import { cancels, chargeWorld, dedupes, SETTLING, settles } from "./calls.ts";
import { client, deskOf, idOf, person, worker } from "./cast.ts";
import { CHARGES, type ChargeCode, charges } from "./charges.ts";

const NOBODY_KNOWS_MS = 60_000;

/** What was found at the other side under a derived key (or, for a captured handler, under the client's key). */
type Look = (key: string) => Promise<{ readonly kind: string }>;

/**
 * What an operator may do to the entry of the key `k`: say that it failed, or give it back. Does neither while it is shown
 * as unsettled, nor where the other side has it. Who insists gives it back whatever is shown.
 */
function operatorTasks(process: Process, operation: string, look: Look): NonNullable<Service["tasks"]> {
  const decide = async (verdict: Verdict) => {
    const settled = await settledAttempt(process, operation);
    for (const key of settled?.keys ?? []) if ((await look(key)).kind !== "none") return "it has happened";
    if (settled === null) return "not settled";
    const { attempt } = settled;
    return process.store.resolve(idOf(operation), { ...decision(process), attempt, force: false, ...verdict });
  };
  return {
    fail: () => decide({ verdict: "failed", completion: FAILED }),
    release: () => decide({ verdict: "released", completion: null }),
    insist: () =>
      process.store.resolve(idOf(operation), {
        ...decision(process),
        attempt: null,
        force: true,
        verdict: "released",
        completion: null,
      }),
  };
}

function decision({ random }: Process): Pick<Decision, "by" | "note" | "fence"> {
  return { by: "ada", note: null, fence: random.bytes(16) };
}

const FAILED = {
  outcome: {
    status: 402,
    content: encodeContent({ headers: [], body: new TextEncoder().encode("failed") }),
    pointer: null,
  },
  retentionMs: 24 * 3_600_000,
  tombstoneMs: 0,
};

/** An attempt of which nothing can land any more, and the keys to be asked about. */
interface SettledAttempt {
  readonly attempt: number;
  readonly keys: readonly string[];
}

/** What there is to look at; `null`: something of the entry can still land, or it has an end. */
async function settledAttempt({ store }: Process, operation: string): Promise<SettledAttempt | null> {
  const entry = await store.read(idOf(operation));
  if (entry === null || entry.completedAt !== null) return null;
  const { intents } = await store.journal(entry.id);
  const leftMs = settlesIn(entry.clock.settlesInMs, intents);
  if (leftMs === null || leftMs > 0) return null;
  const keys = intents.length === 0 ? [entry.key] : intents.map(({ derivedKey }) => derivedKey);
  return { attempt: entry.attempt, keys };
}

/** Deploys a process that also has a person at its console. */
export function withOperator(deploy: Deploy, operation: string): Deploy {
  return async (process, scene) => {
    const service = await deploy(process, scene);
    const look: Look = (key) => deskOf(scene).find(process, key);
    return { ...service, tasks: { ...service.tasks, ...operatorTasks(process, operation, look) } };
  };
}

/** Charges at two processes, the second with an operator. */
export const codes = (code: ChargeCode): World["processes"] => ({
  A: charges(code),
  B: withOperator(charges(code), CHARGES),
});

const hinted: ChargeCode["recover"] = () => ({ dedupes: { forMs: 3_600_000 }, settlesWithinMs: 2_000 });

/** Worlds with a person who settles what is left. */
export const operatorWorlds: readonly World[] = [
  chargeWorld({ recover: settles }, SETTLING, {
    name: "operator-fails",
    about: "a charge that was given up is called failed by an operator while its call may still land",
    covers: [],
    budget: { crashes: 1, ticks: 5, others: { "call late": 1 } },
    processes: codes({ recover: settles, maxAttempts: 1 }),
    actors: [client("Ann", { attempts: 3 }), person("Ada", "B", "fail")],
  }),
  chargeWorld(
    { recover: hinted },
    { ...SETTLING, dedupesForMs: NOBODY_KNOWS_MS * 1_000 },
    {
      name: "operator-fails-deduped",
      about: "the same where the other side dedupes: the late call is of the attempt that was given up",
      covers: [],
      budget: { ticks: 2, others: { "call late": 1, "call refused": 2 } },
      processes: codes({ recover: hinted, maxAttempts: 1 }),
      actors: [client("Ann"), person("Ada", "B", "fail")],
    },
  ),
  chargeWorld(
    { recover: cancels },
    {},
    {
      name: "operator-releases",
      about:
        "an entry that an operator insists on giving back is resumed, not begun anew: intents and payload are kept",
      covers: [],
      budget: { crashes: 1, ticks: 2, others: { "call late": 1 } },
      processes: codes({ recover: cancels }),
      actors: [client("Ann"), client("Bob", { payload: "6", via: ["B"], attempts: 1 }), person("Ada", "B", "insist")],
    },
  ),
  chargeWorld(
    { recover: cancels },
    {},
    {
      name: "operator-beside-sweeper",
      about: "an operator and a sweeper at one entry: whoever claims it first decides",
      covers: [],
      budget: { crashes: 1, ticks: 2 },
      processes: codes({ recover: cancels, maxAttempts: 1 }),
      actors: [client("Ann", { via: ["A"], attempts: 1 }), person("Ada", "B", "release"), worker("Sue", "B", "sweep")],
    },
  ),
  chargeWorld(
    { recover: dedupes, maxDurationMs: 60_000 },
    { dedupesForMs: NOBODY_KNOWS_MS * 1_000 },
    {
      name: "renewed-lease",
      about: "a lease that is renewed while the run goes on, whose renewals are lost, late or refused",
      covers: [],
      budget: { pauses: 1, lost: 1, refused: 1, ticks: 4 },
      processes: {
        A: charges({ recover: dedupes, maxDurationMs: 60_000, timeoutMs: 5_000 }),
        B: charges({ recover: dedupes, maxDurationMs: 60_000, timeoutMs: 5_000 }),
      },
    },
  ),
];
