import { createOncekey, type Oncekey, type OncekeyError, type OncekeyOptions } from "oncekey";
import { identityOf } from "../../../src/core/identity.ts";
import type { Operation } from "../../../src/engine/operation.ts";
import { answerOf } from "../answers.ts";
import { type Provider, type ProviderTerms, provider } from "../outside.ts";
import type { Answer, ClientActor, Outside, Process, Scene, Service, WorkerActor, WorldTransaction } from "../world.ts";

/** Whose keys all worlds use. */
export const SCOPE = { tenant: "acme", client: null };

/** Length of a lease in every world, in milliseconds. */
export const LEASE_MS = 1_000;

/**
 * How long an attempt may take: less than a third of the lease, so that it ends before its first renewal is due. Worlds
 * about renewal set a longer one.
 */
export const SHORT_RUN_MS = 300;

/** What clients ask: which key, and what for. */
export interface Ask {
  readonly key: string;
  readonly payload: string;
}

/** What a client may be given; by default it asks for `5` under `k`, of the processes A and B in turn, twice. */
export interface ClientTerms {
  readonly key?: string;
  readonly payload?: string;
  readonly via?: readonly string[];
  readonly attempts?: number;
}

/** A client. */
export function client(name: string, terms: ClientTerms = {}): ClientActor {
  const { key = "k", payload = "5", via = ["A", "B"], attempts = 2 } = terms;
  const request: Ask = { key, payload };
  return { kind: "client", name, request, identity: key, payload, via, attempts };
}

/** Two that ask for the same, each of a process of its own and once. */
export const ANN_AND_BOB: readonly ClientActor[] = [
  client("Ann", { via: ["A"], attempts: 1 }),
  client("Bob", { via: ["B"], attempts: 1 }),
];

/** The same, and the second one asks again. */
export const ANN_AND_BOB_AGAIN: readonly ClientActor[] = [
  client("Ann", { via: ["A"], attempts: 1 }),
  client("Bob", { via: ["B"], attempts: 2 }),
];

/** A worker that a fair continuation keeps at work: a sweeper. */
export function worker(name: string, on: string, task: string, rounds = 1): WorkerActor {
  return { kind: "worker", name, on, task, rounds, fair: true };
}

/** A worker that does its rounds or not, and no more: a person, a purge. */
export function person(name: string, on: string, task: string, rounds = 1): WorkerActor {
  return { kind: "worker", name, on, task, rounds, fair: false };
}

/** Options of an instance, and whether its sweeper purges (else that part of its rounds takes no steps). */
export type InstanceTerms = Partial<OncekeyOptions<WorldTransaction>> & { readonly purges?: boolean };

/** The instance of a process, with the times of all worlds. */
export function instance(process: Process, { purges, ...options }: InstanceTerms = {}): Oncekey<WorldTransaction> {
  return createOncekey<WorldTransaction>({
    store: purges === true ? process.store : withoutPurge(process.store),
    clock: process.clock,
    random: process.random,
    leaseMs: LEASE_MS,
    waitMs: 0,
    clientRetryWindowMs: 0,
    onError: () => {},
    ...options,
  });
}

/** Starts the instance; what it is refused for is the answer of a process that never came up. */
export async function startRefused(once: ReturnType<typeof instance>): Promise<Answer | null> {
  try {
    await once.start();
    return null;
  } catch (error) {
    if ((error as Partial<OncekeyError>).code !== "oncekey_config_invalid") throw error;
    return { kind: "gone", text: "refused at start" };
  }
}

/** Where nothing can expire, looking for it would only multiply the schedules. */
function withoutPurge(store: Process["store"]): Process["store"] {
  const none = { value: async () => 0 };
  return Object.create(store, { purge: none, purgeDeliveries: none }) as Process["store"];
}

/** The id of a key's entry, as operators know it. */
export function idOf(operation: string, key = "k"): Uint8Array {
  return identityOf(SCOPE, operation, key).id;
}

/**
 * The end that is declared where nothing can find out what happened: the client was told that the key needs recovery, and a
 * person has to come.
 */
export function waitsForPerson(_client: ClientActor, last: Answer | null): string | null {
  const isTold = last?.kind === "later" && last.text.startsWith("unknown: needs_recovery");
  return isTold ? null : `no final answer, and the last one was ${last?.text ?? "none"}`;
}

/** What a process does for clients of an operation that runs without a binding. */
export function direct(
  once: Oncekey<WorldTransaction>,
  operation: Operation<"transaction" | "phases">,
): Pick<Service, "attempt"> {
  return {
    async attempt(request) {
      const { key, payload } = request as Ask;
      return answerOf(await once.run(operation, { scope: SCOPE, key, input: { body: { payload } } }));
    },
  };
}

const desks = new WeakMap<Scene, Provider>();

/** The outside system of a world; processes find it by {@link deskOf}. */
export function outsideOf(terms: Partial<ProviderTerms> = {}): (scene: Scene) => Outside {
  return (scene) => {
    const desk = provider(scene, terms);
    desks.set(scene, desk);
    return desk;
  };
}

/** The outside system of this schedule. */
export function deskOf(scene: Scene): Provider {
  const desk = desks.get(scene);
  if (desk === undefined) throw new Error("This world has nothing outside: give it outsideOf().");
  return desk;
}
