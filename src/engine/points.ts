import type { Session, Store } from "../core/store.ts";

/** Told of every point between two effects; a crash test ends the process in here. */
export type OnPoint = (point: string) => void | Promise<void>;

type AnyMethod = (...args: never[]) => Promise<unknown>;

/** The word of a method in point names: `recordPhase` is `record_phase`. */
const word = (method: string): string => method.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);

/** What tells two uses of one method apart: the phase, the call, the topic. */
function detail(method: string, args: readonly unknown[]): string {
  const named = { recordPhase: 2, recordCall: 2, openIntent: 2, cancelIntent: 2, send: 0 }[method];
  if (named === undefined) return "";
  const value = args[named] as string | { name?: string; call?: string; topic?: string };
  return `:${typeof value === "string" ? value : (value.name ?? value.call ?? value.topic)}`;
}

function pointed<T extends object>(target: T, methods: readonly (keyof T & string)[], onPoint: OnPoint): T {
  const wrapped: T = Object.create(target);
  for (const method of methods) {
    const original = (target[method] as AnyMethod).bind(target) as (...args: unknown[]) => Promise<unknown>;
    const replacement = async (...args: unknown[]) => {
      const name = `${word(method)}${detail(method, args)}`;
      await onPoint(`${name}:before`);
      const value = await original(...args);
      await onPoint(`${name}:after`);
      return value;
    };
    Object.defineProperty(wrapped, method, { value: replacement });
  }
  return wrapped;
}

const SESSION_METHODS = [
  "lock",
  "insertFinished",
  "recordPhase",
  "complete",
  "send",
  "accept",
  "forget",
  "moveProducer",
] as const;
const STORE_METHODS = [
  "read",
  "claim",
  "takeOver",
  "takeDue",
  "markLapsed",
  "release",
  "suspend",
  "markUnknown",
  "complete",
  "openIntent",
  "cancelIntent",
  "recordCall",
] as const;

/** The same store, with a point before and after each of its effects. */
export function withPoints(store: Store<unknown>, onPoint: OnPoint): Store<unknown> {
  const wrapped = pointed(store, STORE_METHODS, onPoint);
  const transaction = <R>(body: (session: Session<unknown>) => Promise<R>) =>
    store.transaction((session) => body(pointed(session, SESSION_METHODS, onPoint)));
  Object.defineProperty(wrapped, "transaction", { value: transaction });
  return wrapped;
}

/** The shape of an operation whose points are asked for. */
export type PointsShape =
  | { readonly runKind: "transaction" | "capture" }
  | {
      readonly runKind: "phases";
      /** Its phases and calls in order; `intent` where the call's recovery form commits one. */
      readonly steps: readonly ({ readonly phase: string } | { readonly call: string; readonly intent: boolean })[];
    };

const around = (name: string): string[] => [`${name}:before`, `${name}:after`];
const ofPhase = (name: string, record: string): string[] => [
  `phase:${name}:entered`,
  ...around(record),
  `phase:${name}:committed`,
];

/** The points that a first run of such an operation passes, in order. Frozen names: crash campaigns are written in them. */
export function crashPoints(shape: PointsShape): string[] {
  switch (shape.runKind) {
    case "transaction":
      return [...around("read"), ...around("lock"), ...around("insert_finished"), "transaction:committed"];
    case "capture":
      return [...around("read"), ...around("claim"), ...around("complete")];
    case "phases":
      return [
        ...around("read"),
        ...around("claim"),
        ...shape.steps.flatMap((step) =>
          "phase" in step
            ? ofPhase(step.phase, `record_phase:${step.phase}`)
            : [
                ...(step.intent ? around(`open_intent:${step.call}`) : []),
                ...around(`call:${step.call}`),
                ...around(`record_call:${step.call}`),
              ],
        ),
        ...ofPhase("complete", "complete"),
      ];
  }
}
