import type { Random } from "../../support/random.ts";
import type { Act, Strike, WireProxy } from "../../support/wire-proxy.ts";
import type { FaultKind } from "../fault.ts";
import type { Network } from "../network.ts";

const LIMIT_MS = 5_000;
const DELAY_MS = { least: 200, most: 1_500 };

/** The wires of the service. */
const WIRES: Readonly<Record<"client" | "database" | "worker" | "provider", (network: Network) => WireProxy>> = {
  client: ({ front }) => front,
  database: ({ database }) => database.api,
  worker: ({ database }) => database.worker,
  provider: ({ psp }) => psp,
};

type ActName = Exclude<Act, object> | "delay";

interface WireFault {
  readonly name: string;
  readonly wire: keyof typeof WIRES;
  readonly toward: Strike["toward"];
  readonly act: ActName;
  readonly matches?: (bytes: Buffer) => boolean;
}

/** COMMIT as a statement of its own, in either protocol of PostgreSQL; not a word inside another statement. */
const isCommit = (bytes: Buffer): boolean => /commit\0/i.test(bytes.toString("latin1"));

/** `before_send`: never arrives · `mid_request`: half arrives · `answer_lost`: done, and nobody hears of it. */
const ROWS: readonly WireFault[] = [
  { name: "client_before_send", wire: "client", toward: "server", act: "cut_before" },
  { name: "client_mid_request", wire: "client", toward: "server", act: "cut_midway" },
  { name: "client_answer_lost", wire: "client", toward: "server", act: "cut_answer" },
  { name: "client_answer_cut", wire: "client", toward: "client", act: "cut_midway" },
  { name: "client_half_closed", wire: "client", toward: "server", act: "half_close" },
  { name: "client_delayed", wire: "client", toward: "server", act: "delay" },
  { name: "client_answer_delayed", wire: "client", toward: "client", act: "delay" },
  { name: "database_before_send", wire: "database", toward: "server", act: "cut_before" },
  { name: "database_mid_statement", wire: "database", toward: "server", act: "cut_midway" },
  { name: "database_answer_lost", wire: "database", toward: "server", act: "cut_answer" },
  { name: "database_answer_cut", wire: "database", toward: "client", act: "cut_midway" },
  { name: "database_half_closed", wire: "database", toward: "server", act: "half_close" },
  { name: "database_delayed", wire: "database", toward: "server", act: "delay" },
  { name: "commit_answer_lost", wire: "database", toward: "server", act: "cut_answer", matches: isCommit },
  { name: "commit_swallowed", wire: "database", toward: "server", act: "cut_before", matches: isCommit },
  { name: "commit_delayed", wire: "database", toward: "server", act: "delay", matches: isCommit },
  { name: "worker_answer_lost", wire: "worker", toward: "server", act: "cut_answer" },
  { name: "provider_before_send", wire: "provider", toward: "server", act: "cut_before" },
  { name: "provider_mid_request", wire: "provider", toward: "server", act: "cut_midway" },
  { name: "provider_answer_lost", wire: "provider", toward: "server", act: "cut_answer" },
  { name: "provider_half_closed", wire: "provider", toward: "client", act: "half_close" },
  { name: "provider_delayed", wire: "provider", toward: "server", act: "delay" },
];

/** What can happen to bytes on each wire. */
export const wireFaults: readonly FaultKind[] = ROWS.map((row) => ({
  name: row.name,
  lane: "wires",
  async strike({ network }, random) {
    const times = random.between(2, 6);
    const act = actOf(row.act, random);
    const strike: Strike = { toward: row.toward, act, ...(row.matches && { matches: row.matches }) };
    const met = await WIRES[row.wire](network).strike(strike, { times, limitMs: LIMIT_MS });
    const how = typeof act === "object" ? `delayed by ${act.delayMs} ms` : act;
    return { did: `${row.wire} wire, toward the ${row.toward}: ${how}, ${met} of ${times} times`, met };
  },
}));

function actOf(name: ActName, random: Random): Act {
  return name === "delay" ? { delayMs: random.between(DELAY_MS.least, DELAY_MS.most) } : name;
}
