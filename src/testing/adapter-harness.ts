import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import type { StoredEntry } from "../core/entry.ts";
import { identityOf } from "../core/identity.ts";
import type { BindingOptions } from "../http/binding.ts";
import {
  type CaptureDefinition,
  createOncekey,
  type Oncekey,
  type OncekeyError,
  type Operation,
  type OperationResponse,
  type Rejection,
  type Scope,
  type TransactionStep,
} from "../index.ts";
import { type MemoryStore, type MemoryTransaction, memoryStore } from "../stores/memory/index.ts";
import { type RawAnswer, type RawRequest, sendRaw } from "./raw-client.ts";
import type { SuiteCase, SuiteHarness } from "./suite.ts";

/** Reads a request header by its name in lower case. */
export type HeaderReader = (name: string) => string | undefined;

/** A binding's options, free of the framework's request: its functions get a way to read headers. */
export interface AdapterBinding extends Pick<BindingOptions<never>, "requireKey" | "accepts" | "allowUnsafeNumbers"> {
  /** Whose key it is, by the request's headers. */
  scope(header: HeaderReader): Scope;
  /** Decides every attempt. Default: allowed. */
  authorize?(header: HeaderReader): boolean | OperationResponse | Rejection;
}

/** A route that the framework has to serve for POST. */
export interface AdapterRoute {
  /** Where a router of its own is mounted, such as `/v1`. */
  readonly mount: string;
  /** The path inside of it, `/orders/:id`. */
  readonly path: string;
  readonly operation: Operation;
  readonly binding: AdapterBinding;
  /** For `capture`: the existing handler. */
  readonly existing?: ExistingHandler;
}

/** An existing handler: how it answers (one of the harness's `ways`), and with which text, computed when it runs. */
export interface ExistingHandler {
  readonly way: string;
  text(body: unknown): Promise<string>;
}

/**
 * What a framework brings to the adapter suite: a way to serve routes on a loopback socket, behind an authentication of
 * its own that answers 401 to requests without an `Authorization` header.
 */
export interface AdapterHarness extends SuiteHarness {
  /** Serves the routes; resolves with the port. */
  serve(routes: readonly AdapterRoute[]): Promise<number>;
  /**
   * The ways in which an existing handler of this framework can answer, beside those that every framework has:
   * `json` (201 and `{"text": …}`), `text` (200), `throw`, `429`, `500`, `eventStream`.
   */
  readonly ways: readonly string[];
  /** The media type that this host itself gives to a body that has none. */
  readonly untypedAs?: string;
}

/** A case of the adapter suite. */
export type AdapterCase = SuiteCase<AdapterHarness>;

/** A binding's options for a framework, given how to read a header of its request. */
export function bindingOptions<Native>(
  binding: AdapterBinding,
  headerOf: (native: Native, name: string) => string | undefined,
): BindingOptions<Native> {
  const { scope, authorize, ...rest } = binding;
  const reader =
    (native: Native): HeaderReader =>
    (name) =>
      headerOf(native, name);
  return {
    ...rest,
    scope: (native) => scope(reader(native)),
    ...(authorize === undefined ? {} : { authorize: (native: Native) => authorize(reader(native)) }),
  };
}

/** The scope that the suite's tokens stand for: `Bearer tenant/client`. */
function tokenScope(header: HeaderReader): Scope {
  const [tenant = "", client = ""] = (header("authorization") ?? "").replace("Bearer ", "").split("/");
  return { tenant, client };
}

type Step = TransactionStep<MemoryTransaction, { body: unknown; params: unknown; query: unknown }>;
type Run = (step: Step) => Promise<OperationResponse | Rejection>;

/** One served operation, or several, over a memory store of their own. */
export interface App {
  readonly once: Oncekey<MemoryTransaction>;
  readonly store: MemoryStore;
  readonly port: number;
  /** How often an operation ran. */
  runs(): number;
  post(request?: Partial<Post>): Promise<RawAnswer>;
  /** The entry of a key of the default token, or `null`. */
  entry(key: string, operation?: string): Promise<StoredEntry | null>;
}

/** A request of the suite. Default: key `"key-1"`, token of tenant acme, body `{"amount":1}` to `/v1/orders/7`. */
export interface Post extends Omit<RawRequest, "headers"> {
  /** Header lines of the key as they are sent; `[]`: no key. */
  readonly keys: readonly string[];
  /** `null`: no `Authorization` header. */
  readonly token: string | null;
  /** `null`: none. */
  readonly type: string | null;
  readonly headers: readonly (readonly [name: string, value: string])[];
}

export interface AppOptions {
  readonly run?: Run;
  readonly kind?: "transaction" | "phases";
  readonly existing?: ExistingHandler;
  readonly binding?: Partial<AdapterBinding>;
  readonly definition?: Partial<Omit<CaptureDefinition<Record<never, never>>, "name" | "version">>;
  readonly settings?: Partial<Parameters<typeof createOncekey<MemoryTransaction>>[0]>;
  /** Further mounts of the same operation, and a second operation on `/v1/others/:id`. Default: `["/v1"]`. */
  readonly mounts?: readonly string[];
}

/** A fresh key, for cases that must not meet each other's entries. */
export const newKey = (): string => randomBytes(9).toString("base64url");

/** Serves an operation (and a second one, `others.create`, that does the same). */
export async function serveApp(harness: AdapterHarness, options: AppOptions): Promise<App> {
  const store = memoryStore();
  const once = createOncekey({ store, onError: () => {}, ...options.settings });
  let runs = 0;
  const count =
    <P extends unknown[], R>(run: (...given: P) => R) =>
    (...given: P): R => {
      runs++;
      return run(...given);
    };
  const { run, existing } = options;
  const counted: AppOptions = {
    ...options,
    ...(run === undefined ? {} : { run: count(run) }),
    ...(existing === undefined ? {} : { existing: { ...existing, text: count(existing.text) } }),
  };
  const binding: AdapterBinding = { scope: tokenScope, ...options.binding };
  const route = (operation: Operation, mount: string, path: string): AdapterRoute => ({
    mount,
    path,
    operation,
    binding,
    ...(counted.existing === undefined ? {} : { existing: counted.existing }),
  });
  const orders = define(once, "orders.create", counted);
  const others = define(once, "others.create", counted);
  const mounts = options.mounts ?? ["/v1"];
  const routes = [...mounts.map((mount) => route(orders, mount, "/orders/:id")), route(others, "/v1", "/others/:id")];
  await once.start();
  const port = await harness.serve(routes);
  return {
    once,
    store,
    port,
    runs: () => runs,
    post: (request = {}) => sendRaw(port, rawPost(request)),
    entry: (key, operation = "orders.create") =>
      store.read(identityOf({ tenant: "acme", client: "app" }, operation, key).id),
  };
}

function define(once: Oncekey<MemoryTransaction>, name: string, options: AppOptions): Operation {
  const { run, kind = "transaction", definition = {} } = options;
  // Never asked: no case lets a captured run be reconciled.
  const reconcile = async () => ({ kind: "unknown", why: "never asked" }) as const;
  if (run === undefined) return once.capture({ name, version: 1, reconcile, ...definition });
  if (kind === "transaction")
    return once.transaction({ name, version: 1, ...definition, run: (step) => run(step as Step) });
  return once.phases({
    name,
    version: 1,
    ...definition,
    run: (op) => op.complete(({ tx, send }) => run({ ...op, tx, send } as unknown as Step)),
  });
}

/** A request of the suite as it goes over the wire. */
export function rawPost(request: Partial<Post>): RawRequest {
  const { keys = ["key-1"], token = "acme/app", type = "application/json", headers = [], ...rest } = request;
  const lines: [string, string][] = keys.map((key) => ["Idempotency-Key", key]);
  if (token !== null) lines.push(["Authorization", `Bearer ${token}`]);
  if (type !== null) lines.push(["Content-Type", type]);
  return { target: "/v1/orders/7", body: '{"amount":1}', ...rest, headers: [...lines, ...headers] };
}

/** The values of an answer's header lines of that name. */
export function valuesOf(answer: RawAnswer, name: string): string[] {
  return answer.headers.filter(([other]) => other === name).map(([, value]) => value);
}

/** Asserts a whole row of the HTTP contract. */
export function assertProblem(
  answer: RawAnswer,
  want: {
    readonly status: number;
    readonly code: OncekeyError["code"];
    readonly retry: string;
    readonly state?: string;
  },
): void {
  const text = answer.body.toString();
  assert.equal(answer.status, want.status, text);
  assert.deepEqual(valuesOf(answer, "content-type"), ["application/problem+json"]);
  const { code, retry, state, status, type, title, detail } = JSON.parse(text) as Record<string, unknown>;
  assert.deepEqual({ code, retry, status }, { code: want.code, retry: want.retry, status: want.status });
  assert.equal(state, want.state ?? "none");
  assert.equal(type, `/problems/${want.code}`);
  for (const member of [title, detail]) assert.ok(typeof member === "string" && member.length > 10);
  assert.deepEqual(valuesOf(answer, "idempotent-replayed"), []);
}

/** Asserts that two answers carry the same status and bytes, and that only the second is marked as a replay. */
export function assertReplay(first: RawAnswer, again: RawAnswer): void {
  assert.equal(again.status, first.status);
  assert.equal(Buffer.compare(again.body, first.body), 0, "the replay has other bytes");
  assert.deepEqual(valuesOf(first, "idempotent-replayed"), [], "the executor's answer is marked");
  assert.deepEqual(valuesOf(again, "idempotent-replayed"), ["true"], "the replay is not marked");
}

/** Waits for a condition that another request brings about. Fails after ten seconds. */
export async function until(condition: () => boolean | Promise<boolean>): Promise<void> {
  for (let tried = 0; tried < 2_000; tried++) {
    if (await condition()) return;
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
  assert.fail("The condition did not come true within ten seconds.");
}

/** A promise and what settles it: keeps a handler running until the case lets it go. */
export function hold(): { readonly held: Promise<void>; letGo(): void } {
  let letGo = () => {};
  const held = new Promise<void>((resolve) => {
    letGo = resolve;
  });
  return { held, letGo: () => letGo() };
}
