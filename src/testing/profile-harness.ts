import assert from "node:assert/strict";
import { created, type OperationResponse, type Rejection, reject } from "../core/response.ts";
import { StoreFailure } from "../core/store.ts";
import type { OncekeyOptions } from "../engine/settings.ts";
import { createOncekey } from "../http/create-oncekey.ts";
import type { Answer, Exchange } from "../http/exchange.ts";
import { bind, type HttpHandler } from "../http/gate.ts";
import type { Profile } from "../http/profile.ts";
import { profileNamed } from "../http/profiles/index.ts";
import { type MemoryStore, type MemoryTransaction, memoryStore } from "../stores/memory/index.ts";
import { type FakeClock, fakeClock } from "./fake-clock.ts";
import type { SuiteCase, SuiteHarness } from "./suite.ts";

/** A request as a dialect's own clients send it. Header names in lower case. */
export interface DialectRequest {
  readonly method?: string;
  /** Default `/v1/things`. */
  readonly target?: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** What a client of the dialect can run into, with a refusal for each. */
export type Situation = "missing" | "malformed" | "mismatch" | "in_progress" | "unknown" | "store_down" | "too_late";

/** A refusal, as the vendor's pages (or the profile's own choice) have it. */
export interface ExpectedRefusal {
  readonly status: number;
  /** Raises where the body is another one. `key`: the client's. */
  body(body: string, key: string): void;
  readonly headers?: Readonly<Record<string, RegExp>>;
}

/** What a dialect brings to the suite: how its clients write, and what they read. */
export interface ProfileHarness extends SuiteHarness {
  readonly profile: string;
  /** A request with this key (`null`: none) that asks for this. Two contents give two requests that differ. */
  request(key: string | null, content: "a" | "b"): DialectRequest;
  /** Keys that the dialect takes; any two differ. */
  keys(): string;
  /** Keys that it does not take, each for another reason. */
  readonly malformed: readonly string[];
  readonly refusals: Readonly<Partial<Record<Situation, ExpectedRefusal>>>;
  /** The same key in another region, zone or queue, where keys count within one. Default: they do not. */
  readonly elsewhere?: (request: DialectRequest) => DialectRequest;
}

/** A case of the profile suite. */
export type ProfileCase = SuiteCase<ProfileHarness>;

/** An instance of the dialect over a memory store, with two operations bound to routes. */
export interface DialectService {
  readonly profile: Profile;
  readonly clock: FakeClock;
  readonly store: MemoryStore;
  /** How often the business ran. */
  readonly ran: () => number;
  /** Sends a request to the first operation, or to another. */
  send(request: DialectRequest, to?: "things" | "others" | "captured"): Promise<Answer>;
  /** What the business does from now on. Default: it succeeds. */
  will: (does: Business) => void;
  /** Whether the store can be reached. */
  reachable: (can: boolean) => void;
}

/** What the business does with a run: succeeds, refuses, or waits until it is let go. */
export type Business = "succeed" | "refuse" | { readonly until: Promise<void> };

/** Makes the service. */
export async function dialectService(
  name: string,
  options: Partial<OncekeyOptions<MemoryTransaction>> = {},
): Promise<DialectService> {
  const clock = fakeClock();
  const store = memoryStore({ clock: clock.now });
  let runs = 0;
  let does: Business = "succeed";
  let isReachable = true;
  const reached = new Proxy(store, {
    get: (target, member) => {
      if (member === "read" && !isReachable) return async () => Promise.reject(unreachable());
      return Reflect.get(target, member) as unknown;
    },
  });
  const once = createOncekey({ store: reached, profile: name, waitMs: 0, clock: clock.clock, ...options });
  const run = async () => {
    runs++;
    return business(does, runs);
  };
  const bound = {
    things: bind(once.transaction({ name: "things.create", version: 1, run }), { scope }),
    others: bind(once.transaction({ name: "others.create", version: 1, run }), { scope }),
    captured: bind(once.capture({ name: "captured.create", version: 1, maxDurationMs: 1_000 }), { scope }),
  };
  await once.start();
  const failing: HttpHandler = async () => {
    runs++;
    return { status: 500, headers: [["content-type", "text/plain"]], body: new TextEncoder().encode("broken") };
  };
  return {
    profile: profileNamed(name),
    clock,
    store,
    ran: () => runs,
    async send(request, to = "things") {
      if (to !== "captured") return bound[to].answer(exchangeOf(request));
      const handled = await bound.captured.capture(exchangeOf(request), failing);
      assert.notEqual(handled.kind, "pass");
      return (handled as { readonly answer: Answer }).answer;
    },
    will: (next) => {
      does = next;
    },
    reachable: (can) => {
      isReachable = can;
    },
  };
}

async function business(does: Business, run: number): Promise<OperationResponse | Rejection> {
  if (typeof does === "object") await does.until;
  return does === "refuse" ? reject(402, { code: "no_luck", run }) : created(`/v1/things/${run}`, { id: run });
}

function unreachable(): StoreFailure {
  return new StoreFailure("unavailable", "The suite has made the store unreachable.");
}

const scope = () => ({ tenant: "acme", client: "app" });

/** The request as an adapter would hand it over. */
export function exchangeOf({ method = "POST", target = "/v1/things", headers, body }: DialectRequest): Exchange {
  return {
    native: {},
    method,
    target,
    params: {},
    headerLines: (name) => (headers[name] === undefined ? [] : [headers[name]]),
    readBody: async () => ({ kind: "bytes", bytes: new TextEncoder().encode(body) }),
  };
}

/** The text of an answer's body. */
export function textOf({ body }: Answer): string {
  assert.ok(body instanceof Uint8Array);
  return new TextDecoder().decode(body);
}

/** The value of a header of an answer. */
export function headerOf({ headers }: Answer, name: string): string | undefined {
  return headers.find(([field]) => field === name)?.[1];
}
