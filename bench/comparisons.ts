import type { Load } from "./contenders.ts";

/** Who takes part: a variant over HTTP, a variant called in its own process, or pgbench. */
export interface Entrant {
  readonly variant: string;
  readonly how: "served" | "called" | "pgbench";
}

/** One ratio: the rate of `of` over that of `over`. */
export interface RatioRow {
  readonly name: string;
  readonly of: string;
  readonly over: string;
}

/** Contenders that work in turn under one load, and what is told of them. */
export interface Comparison {
  readonly name: string;
  readonly title: string;
  /** Of a larger group that `--only` can name. */
  readonly group: string;
  readonly load: Load;
  readonly entrants: readonly Entrant[];
  readonly ratios: readonly RatioRow[];
}

/** The load that every comparison has where it does not say otherwise. */
const BASE_LOAD: Load = { clients: 32, keys: "fresh", answerBytes: 200 };

const served = (...names: readonly string[]): Entrant[] => names.map((variant) => ({ variant, how: "served" }));

/** The comparisons whose ratios are targets; `--quick` runs these and the peers. */
export const TARGETS: readonly Comparison[] = [
  {
    name: "transaction",
    group: "transaction",
    title: "a fresh request of a `transaction`",
    load: BASE_LOAD,
    entrants: [
      ...served("plain", "handwritten", "transaction"),
      { variant: "transaction", how: "called" },
      { variant: "pgbench", how: "pgbench" },
    ],
    ratios: [
      { name: "transactionVsHandwritten", of: "transaction", over: "handwritten" },
      { name: "transactionVsPgbench", of: "transaction-called", over: "pgbench" },
      { name: "transactionOverHttpVsPgbench", of: "transaction", over: "pgbench" },
      { name: "transactionVsPlain", of: "transaction", over: "plain" },
    ],
  },
  {
    name: "replay",
    group: "replay",
    title: "a replay",
    load: { ...BASE_LOAD, keys: "replays" },
    entrants: served("read", "transaction"),
    ratios: [{ name: "replayVsRead", of: "transaction", over: "read" }],
  },
  {
    name: "groups",
    group: "groups",
    title: "`capture` with and without group claims",
    load: BASE_LOAD,
    entrants: served("capture-grouped", "capture-single"),
    ratios: [{ name: "groupClaimsGain", of: "capture-grouped", over: "capture-single" }],
  },
];

const KINDS = ["transaction", "phases", "capture"];

function kinds(name: string, title: string, load: Partial<Load>, yardstick = "plain"): Comparison {
  const ratios = KINDS.map((of) => ({
    name: `${of}Vs${yardstick === "plain" ? "Plain" : "Read"}`,
    of,
    over: yardstick,
  }));
  const entrants = served(yardstick, ...KINDS);
  return { name: `kinds-${name}`, group: "kinds", title, load: { ...BASE_LOAD, ...load }, entrants, ratios };
}

/** Each run kind along each axis, from the base load on: clients, length of the answer, keys. */
export const KIND_COMPARISONS: readonly Comparison[] = [
  ...[1, 8, 32, 128].map((clients) => kinds(`${clients}-clients`, `fresh, ${clients} clients`, { clients })),
  kinds("8-kb", "fresh, answers of 8 KB", { answerBytes: 8_192 }),
  kinds("256-kb", "fresh, answers of 256 KB", { answerBytes: 262_144 }),
  kinds("mostly-replays", "nine of ten are replays", { keys: "mostly-replays" }),
  kinds("replays", "replays", { keys: "replays" }, "read"),
  kinds("hot", "one key for all", { keys: "hot" }, "read"),
];

/** The library's and the hand-written statements, both without names: for where a pooler stands in between. */
export const UNNAMED: Comparison = {
  name: "unnamed",
  group: "unnamed",
  title: "statements without names",
  load: BASE_LOAD,
  entrants: served("handwritten-unnamed", "transaction-unnamed", "transaction"),
  ratios: [
    { name: "unnamedVsHandwrittenUnnamed", of: "transaction-unnamed", over: "handwritten-unnamed" },
    { name: "namedVsUnnamed", of: "transaction", over: "transaction-unnamed" },
  ],
};

/** Oncekey's `transaction` before each peer, on the peer's host, and the peers. */
export function peerComparison(peers: readonly { readonly variant: string; readonly against: string }[]): Comparison {
  const names = [...new Set([...peers.map(({ against }) => against), ...peers.map(({ variant }) => variant)])];
  const ratios = peers.map(({ variant, against }) => ({ name: variant, of: against, over: variant }));
  const title = "peers around the same business insert";
  return { name: "peers", group: "peers", title, load: BASE_LOAD, entrants: served(...names), ratios };
}
