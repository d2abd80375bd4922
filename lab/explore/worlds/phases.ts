import { created } from "oncekey";
import { COMMON, EFFECTS, messagesGoWithRows, onceInside, successHasEffect } from "../invariants.ts";
import type { Deploy, Invariant, World } from "../world.ts";
import {
  ANN_AND_BOB_AGAIN,
  type Ask,
  client,
  direct,
  type InstanceTerms,
  instance,
  SHORT_RUN_MS,
  startRefused,
  waitsForPerson,
} from "./cast.ts";
import { ORDERS } from "./orders.ts";
import { sweepTasks } from "./sweeping.ts";

/** The code of a `phases` operation without outside calls. */
export interface BookingCode {
  readonly name?: string;
  readonly version?: number;
  /** Names of the phases before the end; each writes a row. */
  readonly phases?: readonly string[];
  /** What the row of the last transaction is called. Default `end`. */
  readonly end?: string;
  /** The end sends a message. */
  readonly sends?: boolean;
  /** A step of the handler's own may hang for ever (`hang`). */
  readonly mayHang?: boolean;
  readonly isDated?: boolean;
  readonly maxDurationMs?: number;
  readonly once?: InstanceTerms;
}

/** Deploys the operation. */
export function bookings(code: BookingCode = {}): Deploy {
  return async (process, scene) => {
    const once = instance(process, code.once);
    let runs = 0;
    const operation = once.phases({
      name: code.name ?? ORDERS,
      version: code.version ?? 1,
      maxDurationMs: code.maxDurationMs ?? SHORT_RUN_MS,
      async run(op) {
        const by = `${process.name}${++runs}`;
        const dated = () => (code.isDated === true ? { at: scene.nowMs() } : {});
        const own = { identity: op.key, payload: (op.input.body as Ask).payload };
        for (const phase of code.phases ?? ["transaction"]) {
          await op.phase(phase, ({ tx }) => tx.insert(EFFECTS, { ...own, phase, ...dated() }));
        }
        if (code.mayHang === true) await scene.step(process, HANGING).then((hangs) => (hangs ? FOREVER : undefined));
        return op.complete(async ({ tx, send }) => {
          await tx.insert(EFFECTS, {
            ...own,
            phase: code.sends === true ? "message" : (code.end ?? "end"),
            ...dated(),
          });
          if (code.sends === true) await send("order.created", { by });
          return created("/orders/1", { by });
        });
      },
    });
    const refusal = await startRefused(once);
    if (refusal !== null) return { attempt: async () => refusal };
    return { ...direct(once, operation), tasks: sweepTasks(once) };
  };
}

const FOREVER = new Promise<never>(() => {});

const HANGING = {
  label: "works",
  ways: [
    { label: "", costs: null, perform: () => false },
    { label: "hangs for ever", costs: "hang", perform: () => true },
  ],
};

const RULES: readonly Invariant[] = [onceInside(), successHasEffect({ phases: ["end"] }), ...COMMON];

type Terms = Pick<World, "name" | "about" | "covers" | "budget"> & Partial<World>;

/** A world of phases: two processes of the same code, and a client that tries them in turn. */
export function bookingWorld(code: BookingCode, terms: Terms): World {
  return {
    processes: { A: bookings(code), B: bookings(code) },
    actors: [client("Ann")],
    invariants: RULES,
    ...terms,
  };
}

/** Worlds of phases without outside calls. */
export const phaseWorlds: readonly World[] = [
  bookingWorld(
    {},
    {
      name: "phases-zombie",
      about: "a process sleeps past its lease at any step, another goes on, and it wakes: its fence is worth nothing",
      covers: [],
      budget: { pauses: 1, ticks: 2, impatience: 1 },
    },
  ),
  bookingWorld(
    {},
    {
      name: "phases-fences",
      about: "the lease lapses twice: no two owners ever have one fence",
      covers: [],
      budget: { pauses: 2, ticks: 4, impatience: 2 },
      processes: { A: bookings(), B: bookings(), C: bookings() },
      actors: [client("Ann", { via: ["A", "B", "C"], attempts: 3 })],
    },
  ),
  bookingWorld(
    {},
    {
      name: "phases-lost-commit",
      about: "a phase's COMMIT, or the last one, is under way when its connection or process is lost",
      covers: [],
      budget: { adrift: 1, crashes: 1, ticks: 2, impatience: 1 },
    },
  ),
  bookingWorld(
    {},
    {
      name: "phases-lost-answers",
      about: "answers of the store are lost, and statements never arrive, at every step",
      covers: [],
      budget: { lost: 2, refused: 1, ticks: 1 },
      actors: [client("Ann", { attempts: 3 })],
    },
  ),
  bookingWorld(
    { sends: true, phases: [] },
    {
      name: "phases-message",
      about: "a message goes out with the last commit of a run that crashes, sleeps and is resumed",
      covers: [],
      budget: { crashes: 1, pauses: 1, adrift: 1, ticks: 2 },
      invariants: [messagesGoWithRows, onceInside(), successHasEffect({ phases: ["message"] }), ...COMMON],
    },
  ),
  bookingWorld(
    { mayHang: true, phases: [] },
    {
      name: "phases-hang",
      about: "a handler that hangs for ever: its renewals end with its time, and others go on",
      covers: [],
      budget: { ticks: 1, impatience: 1, untilMs: 5_000, others: { hang: 1 } },
      actors: ANN_AND_BOB_AGAIN,
      progressWithinMs: 60_000,
    },
  ),
  bookingWorld(
    {},
    {
      name: "phases-given-up",
      about: "attempts that end without a word are counted; what kills its process is shown to a person",
      covers: [],
      budget: { crashes: 2, ticks: 3 },
      processes: { A: bookings(), B: bookings(), C: bookings() },
      actors: [client("Ann", { via: ["A", "B", "C"], attempts: 3 })],
      declaredEnd: waitsForPerson,
    },
  ),
];
