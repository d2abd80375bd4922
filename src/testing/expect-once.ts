import { AssertionError } from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { type HungUp, openTarget, type SentRequest, type Target, type TestableApp } from "./app-target.ts";
import type { Crash } from "./crash.ts";
import {
  checkSending,
  inPatience,
  judged,
  type Patience,
  patienceOf,
  type Send,
  type SendingOptions,
  type Sent,
  sendInTurn,
  sendingOf,
  sendTogether,
  unansweredOf,
} from "./duplicates.ts";
import { assertOnce, type Scenario } from "./once-report.ts";
import { type Seen, seenHttp, seenValue } from "./seen-answer.ts";

/** A request of {@link expectOnce}, the same bytes each time. */
export interface OnceRequest {
  /** Default `POST`. */
  readonly method?: string;
  /** Path and query. */
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** Text and bytes are sent as they are, anything else as JSON. */
  readonly body?: unknown;
}

/** How the user's action is sent, and to whom. */
export type OnceAction =
  | {
      readonly app: TestableApp;
      /** The request; the key's header is added to it. A function gets the key, and puts it where it belongs. */
      readonly request: OnceRequest | ((key: string) => OnceRequest);
      /** A process that gets the request first, and dies of it; then `app` gets the retries. */
      readonly dies?: { readonly app: TestableApp; readonly at: Crash };
    }
  | {
      /** Does the action under a key: a call of your own client, `once.run`, a handler of a queue. */
      readonly call: (key: string) => Promise<unknown>;
      /** A process that does it first, and dies of it. */
      readonly dies?: { readonly call: (key: string) => Promise<unknown>; readonly at: Crash };
    };

/** What is counted, and under which conditions. */
export interface ExpectOnceOptions extends SendingOptions {
  /** Counts what there is: rows, messages, charges at a provider. What matters is how many are added. */
  effects(): number | Promise<number>;
  /** How many effects one action has. Default 1; 0 for one that is refused. */
  readonly expected?: number;
  /** What the client lives through, each under a key of its own. Default: all that the action allows. */
  readonly scenarios?: readonly Exclude<Scenario, "crash">[];
}

/** One action, as the scenarios send it. */
interface World {
  readonly subject: string;
  readonly options: ExpectOnceOptions;
  readonly within: Patience;
  readonly scenarios: readonly Scenario[];
  /** A send of that key. */
  to(key: string): Send;
  /** Sends and hangs up; resolves with what becomes of the run. */
  hangUp?(key: string): Promise<HungUp>;
  die?(key: string): Promise<void>;
  close(): Promise<void>;
}

/**
 * Does one action of a user again and again, as clients do: after a lost answer, at one moment, after hanging up, after a
 * crash (`dies`). Raises an `AssertionError` unless each key had its effect once and all final answers to it were equal.
 * Works with any handler, and in any test framework. Raises a `TypeError` for options by which nothing would be sent twice.
 */
export async function expectOnce(options: ExpectOnceOptions & OnceAction): Promise<void> {
  checkSending(sendingOf(options));
  const world = "app" in options ? await worldOfApp(options) : worldOfCalls(options);
  try {
    for (const scenario of world.scenarios) await runScenario(world, scenario);
  } finally {
    await world.close();
  }
}

const DIED = { how: "sent, the process died", failure: null };

async function runScenario(world: World, scenario: Scenario): Promise<void> {
  const { subject, options, within } = world;
  const { expected = 1 } = options;
  const { concurrent, retries } = sendingOf(options);
  const key = randomUUID();
  const before = await options.effects();
  const send = world.to(key);
  const sent: Sent[] = [];
  if (scenario === "lost_answer") sent.push(...(await sendInTurn(send, "sent, its answer lost", 1, within)));
  if (scenario === "crash") await world.die?.(key);
  const hungUp = scenario === "hang_up" ? await world.hangUp?.(key) : undefined;
  if (scenario === "concurrent" || scenario === "crash")
    sent.push(...(await sendTogether(send, "sent at one moment", concurrent, within)));
  sent.push(...(await sendInTurn(send, "sent after that", retries, within)));
  await overOf(hungUp, within);
  const unanswered = scenario === "crash" ? DIED : hungUp && unansweredOf(hungUp, within);
  const effects = { seen: (await options.effects()) - before, expected };
  assertOnce({ scenario, subject, unanswered, sent, effects }, "expectOnce");
}

/** Of a run whose client has gone: counting before its end would miss a second effect. Gives up on one that never ends. */
async function overOf(hungUp: HungUp | undefined, within: Patience): Promise<void> {
  let passedMs = 0;
  while (passedMs < within.patienceMs && hungUp?.isOver() === false) passedMs += await within.pause(20);
}

async function worldOfApp(options: ExpectOnceOptions & Extract<OnceAction, { app: unknown }>): Promise<World> {
  const { app, request, dies } = options;
  const { keyHeader } = sendingOf(options);
  const within = patienceOf(options);
  const build = (key: string) => sentRequest(request, key, keyHeader);
  const target = await openTarget(app);
  const dying = dies === undefined ? null : await openTarget(dies.app);
  const { method, path } = build("");
  return {
    subject: `${method} ${path}`,
    options,
    within,
    scenarios: scenariosOf(options, ["lost_answer", "concurrent", "hang_up"]),
    to: (key) => judged(() => target.send(build(key)), seenHttp),
    hangUp: (key) => inPatience(target.hangUp(build(key)), within),
    ...(dying === null ? {} : { die: (key: string) => dieOf(options, () => dying.send(build(key))) }),
    close: () => closeAll([target, dying]),
  };
}

function worldOfCalls(options: ExpectOnceOptions & Extract<OnceAction, { call: unknown }>): World {
  const { call, dies } = options;
  return {
    subject: "The call",
    options,
    within: patienceOf(options),
    scenarios: scenariosOf(options, ["lost_answer", "concurrent"]),
    to: (key) => judged<unknown>(() => call(key), seenValue as (value: unknown) => Promise<Seen>),
    ...(dies === undefined ? {} : { die: (key: string) => dieOf(options, () => dies.call(key)) }),
    close: async () => {},
  };
}

/** With a crash there is one scenario: it is about what was left behind, and that is there once. */
function scenariosOf(
  { dies, scenarios }: ExpectOnceOptions & { readonly dies?: unknown },
  possible: readonly Scenario[],
): readonly Scenario[] {
  if (dies !== undefined) return ["crash"];
  const chosen = possible.filter((scenario) => scenarios?.some((asked) => asked === scenario) ?? true);
  if (chosen.length > 0) return chosen;
  throw new TypeError(`expectOnce can run ${possible.join(", ")} here, and none of them is in \`scenarios\`.`);
}

/** On a fake clock the dying process may have to wait for time before it comes to its point. */
async function dieOf(options: OnceAction & SendingOptions, action: () => Promise<unknown>): Promise<void> {
  const { dies } = options;
  if (dies === undefined) return;
  if (dies.at.isDead) {
    const message = `The process of the crash point "${dies.at.point}" died before: make a crash of its own for each test.`;
    throw new AssertionError({ message, operator: "expectOnce" });
  }
  const within = patienceOf(options);
  const ended: { failure?: { readonly error: unknown } } = {};
  const watched = dies.at.during(action).catch((error: unknown) => {
    ended.failure = { error };
  });
  await within.settled(watched);
  if (ended.failure !== undefined) throw ended.failure.error;
  if (dies.at.isDead) return;
  const message = `The process neither came to the crash point "${dies.at.point}" nor ended within ${within.patienceMs} ms.`;
  throw new AssertionError({ message, operator: "expectOnce" });
}

async function closeAll(targets: readonly (Target | null)[]): Promise<void> {
  await Promise.all(targets.map((target) => target?.close()));
}

/** The request as it is sent. */
function sentRequest(given: OnceRequest | ((key: string) => OnceRequest), key: string, keyHeader: string): SentRequest {
  const { method = "POST", path, headers = {}, body } = typeof given === "function" ? given(key) : given;
  const lines = Object.entries(headers).map(([name, value]): [string, string] => [name.toLowerCase(), value]);
  if (typeof given !== "function") lines.push([keyHeader.toLowerCase(), key]);
  const bytes = bytesOf(body);
  const isJson = bytes !== null && typeof body !== "string" && !(body instanceof Uint8Array);
  if (isJson && !lines.some(([name]) => name === "content-type")) lines.push(["content-type", "application/json"]);
  return { method, path, headers: lines, body: bytes };
}

function bytesOf(body: unknown): Uint8Array | null {
  if (body === undefined) return null;
  if (body instanceof Uint8Array) return body;
  return Buffer.from(typeof body === "string" ? body : JSON.stringify(body));
}
