import { type Store, StoreFailure } from "../../src/core/store.ts";
import { textOf } from "./digest.ts";
import { gateTransaction } from "./gate-transaction.ts";
import { aboutOf, phraseOf } from "./phrases.ts";
import { type Member, type PendingStep, register, type Stage, type StepWay } from "./stage.ts";
import type { WorldTransaction } from "./world.ts";

type AnyMethod = (...args: unknown[]) => Promise<unknown>;

/** Methods of the port that only look. Losing their answer or their statement is the same. */
const READS: readonly (keyof Store)[] = ["clockMs", "read", "running", "journal", "deliveries"];
/** What sweepers note for operators: nobody else reads it. */
const LOCAL: readonly (keyof Store)[] = ["announce"];
const WRITES: readonly (keyof Store)[] = [
  ...(["claim", "takeOver", "renew", "forgetExpired", "release", "suspend", "markUnknown", "complete"] as const),
  ...(["openIntent", "cancelIntent", "recordCall"] as const),
  ...(["takeDue", "markLapsed", "purge", "purgeDeliveries", "resolve"] as const),
];

/** The store as one process has it: each method is a step, a transaction's statements and its COMMIT as well. */
export function gatedStore(stage: Stage, base: Store<WorldTransaction>): (member: Member) => Store<WorldTransaction> {
  return (member) => {
    const gated: Store<WorldTransaction> = Object.create(base);
    const put = (name: string, value: unknown) => Object.defineProperty(gated, name, { value });
    for (const name of READS) put(name, statement(stage, member, base, name, readWays));
    for (const name of LOCAL) put(name, statement(stage, member, base, name, readWays, true));
    for (const name of WRITES) put(name, statement(stage, member, base, name, writeWays));
    const { transaction, within, real } = gateTransaction(stage, member, base);
    put("transaction", transaction);
    put("within", within);
    for (const name of ["outbox", "bodies"] as const) put(name, gatedPart(stage, member, base, name));
    for (const name of ["owns", "send"] as const) {
      const method = (base[name] as AnyMethod).bind(base);
      const run: AnyMethod = (tx, ...rest) => method(real(tx as WorldTransaction), ...rest);
      put(name, statement(stage, member, { [name]: run } as never, name, readWays));
    }
    return gated;
  };
}

/** A part of the port with methods of its own: the outbox as relays see it, the list of bodies. */
function gatedPart(stage: Stage, member: Member, base: Store<WorldTransaction>, part: "outbox" | "bodies"): unknown {
  const methods = Object.entries(base[part]) as [string, AnyMethod][];
  return Object.fromEntries(
    methods.map(([name, method]) => {
      const run: AnyMethod = (...args) => method.apply(base[part], args);
      const label = `${part}.${name}`;
      return [name, statement(stage, member, { [label]: run } as never, label as never, writeWays)];
    }),
  );
}

type WaysOf = (stage: Stage, step: Pick<PendingStep, "label" | "about">, run: () => Promise<unknown>) => StepWay[];

function statement(
  stage: Stage,
  owner: Member,
  base: Store<WorldTransaction>,
  name: keyof Store,
  waysOf: WaysOf,
  isLocal = false,
): AnyMethod {
  const method = (base[name] as AnyMethod).bind(base);
  return (...args) => {
    const about = aboutOf(name, args);
    const label = phraseOf(name, args);
    const ways = waysOf(stage, { label, about }, () => method(...args));
    return register(stage, { owner, label, ways, isLocal, about }).settled;
  };
}

const unavailable = (why: string) => new StoreFailure("unavailable", `Explored: ${why}.`);

const refusedWay = (): StepWay => ({
  label: "never arrives",
  costs: "refused",
  perform() {
    throw unavailable("the statement never arrived");
  },
});

const readWays: WaysOf = (_stage, _step, run) => [{ label: "", costs: null, perform: run }, refusedWay()];

const writeWays: WaysOf = (stage, { label, about }, run) => [
  { label: "", costs: null, perform: run },
  {
    label: "its answer is lost",
    costs: "lost",
    async perform() {
      await run();
      throw unavailable("the answer was lost");
    },
  },
  refusedWay(),
  {
    label: "is adrift",
    costs: "adrift",
    perform() {
      // Nobody hears of it any more; an error of it neither.
      const quietly = { label: "", costs: null, perform: () => run().catch(() => {}) };
      register(stage, { owner: null, label: `adrift: ${label}`, ways: [quietly], isLocal: false, about });
      throw unavailable("the connection was lost with the statement under way");
    },
  },
];

/** What a step's result is called in a schedule. */
export function resultText(value: unknown): string {
  const text = textOf(value);
  return text.length > 160 ? `${text.slice(0, 157)}...` : text;
}
