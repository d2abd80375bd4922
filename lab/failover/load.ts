import { randomUUID } from "node:crypto";
import { type Action, type ActionKind, type Attempt, perform } from "./actions.ts";

/** A tenant of the example, its database, and the APIs that serve it. */
export interface Side {
  readonly database: string;
  readonly tenant: string;
  readonly token: string;
  readonly apis: readonly string[];
}

/** A fleet of clients that go on until they are told to stop. */
export interface Load {
  /** Everything that was ever asked for, oldest first. */
  readonly actions: readonly Action[];
  /** How many answers that count have come. */
  answered(): number;
  /** Attempts that wait for an answer now. */
  waiting(): number;
  /** Begins; each client finishes one action after the other. */
  start(): void;
  /** No new actions; resolves when every client has its last answer, or has given up after `limitMs`. */
  drain(limitMs: number): Promise<void>;
}

/** What a load is made of. */
export interface LoadOptions {
  readonly sides: readonly Side[];
  readonly clients: number;
  readonly random: () => number;
  /** Longest wait for one answer, in milliseconds. */
  readonly timeoutMs: number;
}

/** One action in so many is sent by two clients at the same time. */
const TWICE_EVERY = 4;
const DECLINED_EVERY = 10;
/** Refunds have to be smaller than their charge. */
const CHARGES_FROM = 1_000_000;

/** Makes the fleet. Half of the clients belong to each side. */
export function loadOf({ sides, clients, random, timeoutMs }: LoadOptions): Load {
  const actions: Action[] = [];
  let running: Promise<void>[] = [];
  let stopped = true;
  let endAtMs = Infinity;
  let next = 1;
  let answered = 0;
  const givesUp = () => performance.now() > endAtMs;
  const open = new Set<Action>();

  async function ask(side: Side, kind: ActionKind, more: Readonly<Record<string, unknown>>): Promise<Attempt | null> {
    const n = next++;
    const amount = kind === "charge" ? CHARGES_FROM + n : n;
    const { tenant, token, apis } = side;
    const senders = n % TWICE_EVERY === 0 ? 2 : 1;
    const payload = { amount_minor: amount, ...more };
    const action: Action = {
      kind,
      tenant,
      token,
      key: randomUUID(),
      payload,
      amount,
      senders,
      attempts: [],
      finals: [],
    };
    actions.push(action);
    open.add(action);
    const first = Math.floor(random() * apis.length);
    const sending = Array.from({ length: senders }, (_, sender) =>
      perform(action, { apis, timeoutMs, givesUp }, first + sender),
    );
    const ends = await Promise.all(sending);
    open.delete(action);
    answered++;
    return ends[0] ?? null;
  }

  /** An invoice, a charge, and a refund of it: one of each run kind. */
  async function client(side: Side): Promise<void> {
    while (!stopped) {
      await ask(side, "invoice", { customer_id: "cus_1", currency: "EUR" });
      const source = next % DECLINED_EVERY === 0 ? "tok_declined" : "tok_visa";
      const charge = await ask(side, "charge", { currency: "EUR", source });
      if (charge?.status !== 201) continue;
      const { id } = JSON.parse(charge.body) as { id: string };
      await ask(side, "refund", { charge_id: id });
    }
  }

  return {
    actions,
    answered: () => answered,
    waiting: () => open.size,
    start() {
      stopped = false;
      endAtMs = Infinity;
      running = Array.from({ length: clients }, (_, place) => client(sides[place % sides.length] as Side));
    },
    async drain(limitMs) {
      stopped = true;
      endAtMs = performance.now() + limitMs;
      await Promise.all(running);
    },
  };
}
