import { createServer, type RequestListener, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { created, createOncekey, type Oncekey, type Operation, reject } from "oncekey";
import { type MemoryStore, type MemoryTransaction, memoryStore } from "oncekey/memory";
import { type FakeClock, fakeClock } from "oncekey/testing";

/** What a call sends as its input. */
export interface RpcInput {
  readonly item?: string;
  readonly amount?: number;
}

/** The operations a host binds: `create` and `charge` run themselves, `wrap` captures `existing`. */
export interface RpcOperations {
  readonly create: Operation<"transaction">;
  readonly charge: Operation<"phases">;
  readonly wrap: Operation<"capture">;
  /** The existing code behind `wrap`; counted. */
  existing(input: RpcInput): Promise<unknown>;
  /** Whether the caller may go on; asked on every attempt. */
  allowed(): boolean;
}

/** What a host answered, in the words that all hosts share. */
export type RpcAnswer =
  | { readonly kind: "value"; readonly value: unknown; readonly replayed: boolean }
  | {
      readonly kind: "error";
      readonly status: number;
      readonly message: string;
      /** Ours, or the application's own. */
      readonly code: unknown;
      readonly retry?: unknown;
      readonly state?: unknown;
      readonly retryAfterMs?: unknown;
    };

/** One call over HTTP. */
export interface RpcRequest {
  readonly mutation: "create" | "charge" | "wrap";
  readonly key?: string | undefined;
  readonly tenant?: string;
  readonly input?: RpcInput;
  readonly signal?: AbortSignal;
}

/** What errors the existing code of a host throws. */
export type RefusalKind = "conflict" | "unauthorized" | "gone-silent";

/** A framework with the three mutations bound. */
export interface RpcHost {
  readonly name: string;
  listener(operations: RpcOperations): RequestListener;
  call(url: string, request: RpcRequest): Promise<RpcAnswer>;
  /** An error of the framework's own kind, as existing code throws it. */
  error(kind: RefusalKind, message: string): Error;
}

/** An instance behind HTTP. */
export interface RpcInstance {
  readonly once: Oncekey<MemoryTransaction>;
  readonly url: string;
  call(request: RpcRequest): Promise<RpcAnswer>;
}

/** Several instances on one store, and what they did. */
export interface RpcWorld {
  readonly store: MemoryStore;
  readonly time: FakeClock;
  /** The inputs the existing code ran with. */
  readonly ran: RpcInput[];
  /** What the existing code does; may be replaced. */
  existing: (input: RpcInput) => Promise<unknown>;
  /** What `charge` waits for between its phases; may be replaced. */
  between: () => Promise<void>;
  allowed: boolean;
  /** Starts an instance; `stopped`: its timers do not fire, as those of a process that died. */
  instance(options?: { readonly stopped?: boolean; readonly waitMs?: number }): Promise<RpcInstance>;
  close(): Promise<void>;
}

/** How long a lease lasts, in milliseconds of the world's clock. */
export const LEASE_MS = 1_000;

function define(world: RpcWorld, once: Oncekey<MemoryTransaction>): RpcOperations {
  const create = once.transaction({
    name: "orders.create",
    version: 1,
    async run({ tx, input, scope }) {
      const { item } = input.body as RpcInput;
      await tx.insert("orders", { item, tenant: scope.tenant });
      if (item === "sold out") return reject(409, { code: "sold_out", title: "Sold out", left: 0 });
      return created("/orders/1", { item, big: 9_007_199_254_740_991n, at: "2026-01-01" });
    },
  });
  const charge = once.phases({
    name: "charges.create",
    version: 1,
    async run(op) {
      const { item } = op.input.body as RpcInput;
      await op.phase("booked", async ({ tx }) => void (await tx.insert("charges", { item, tenant: op.scope.tenant })));
      await world.between();
      return op.complete(async () => created("/charges/1", { item }));
    },
  });
  // Nobody but an operator could say what the tests' own code did.
  const reconcile = async () => ({ kind: "unknown", why: "the test keeps no trace" }) as const;
  const wrap = once.capture({ name: "orders.wrap", version: 1, reconcile });
  const existing = async (input: RpcInput) => {
    world.ran.push(input);
    return world.existing(input);
  };
  return { create, charge, wrap, existing, allowed: () => world.allowed };
}

/** Creates a world for a host. */
export function rpcWorld(host: RpcHost): RpcWorld {
  const time = fakeClock();
  const store = memoryStore({ clock: time.now });
  const servers: Server[] = [];
  const world: RpcWorld = {
    store,
    time,
    ran: [],
    existing: async (input) => ({ item: input.item ?? null }),
    between: async () => {},
    allowed: true,
    async instance({ stopped = false, waitMs = 0 } = {}) {
      const clock = stopped ? { ...time.clock, after: () => () => {} } : time.clock;
      const once = createOncekey({ store, clock, waitMs, leaseMs: LEASE_MS, onError: () => {} });
      const operations = define(world, once);
      const listener = host.listener(operations);
      await once.start();
      const server = createServer(listener);
      servers.push(server);
      await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
      const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
      return { once, url, call: (request) => host.call(url, request) };
    },
    async close() {
      for (const server of servers) server.closeAllConnections();
      await Promise.all(servers.map((server) => new Promise((resolve) => server.close(resolve))));
    },
  };
  return world;
}
