import type { ClientOptions, SubmissionRequest } from "oncekey/client";
import { afterEach, beforeEach, expect } from "vitest";
import { type ClientDesk, clientDesk } from "./client-desk.ts";
import { type ClientServer, json, type Reply, silence, startClientServer, text, until } from "./client-server.ts";

/** Registers a server of its own for each test of a file. What is given stands for the running test's. */
export function testServer(): ClientServer {
  let server: ClientServer;
  beforeEach(async () => {
    server = await startClientServer();
  });
  afterEach(() => server.close());
  return {
    get url() {
      return server.url;
    },
    get arrived() {
      return server.arrived;
    },
    get replies() {
      return server.replies;
    },
    set replies(next) {
      server.replies = next;
    },
    open: () => server.open(),
    close: () => server.close(),
  };
}

/** What tests order of a server, and which keys their orders came with. */
export function ordersOf(server: ClientServer) {
  const keys = () => server.arrived.map(({ headers }) => headers["idempotency-key"]);
  const order = (amount = 100) => ({ url: `${server.url}/v1/charges`, json: { amount } });
  return {
    order,
    keys,
    distinctKeys: () => new Set(keys()).size,
    /** Sends an order that gets no answer, and aborts: nobody knows whether it was carried out. */
    async leaveOpen(options: Partial<ClientOptions> = {}): Promise<ClientDesk> {
      const desk = clientDesk(options);
      const before = server.arrived.length;
      server.replies = [silence];
      const stop = new AbortController();
      const sending = desk.client.submit("cart-1", order(), { signal: stop.signal });
      await until(() => server.arrived.length > before);
      stop.abort();
      expect(await sending).toMatchObject({ kind: "aborted", sent: true });
      server.replies = [json(201, {})];
      return desk;
    },
  };
}

/** A server of its own for each test of a file, and an order that is submitted to it. */
export interface ClientOrders {
  /** The running test's. */
  readonly server: ClientServer;
  /** Submits the order to a server that replies like this, with a window for many pauses. */
  submitTo(
    replies: Reply[],
    desk?: ClientDesk,
    request?: Partial<SubmissionRequest>,
  ): ReturnType<ClientDesk["client"]["submit"]>;
  /** That many attempts, and one key and the same bytes over all of them. */
  expectOneKey(attempts: number): void;
}

/** Registers the servers. */
export function clientOrders(): ClientOrders {
  const server = testServer();
  return {
    server,
    submitTo(replies, desk = clientDesk(), request = {}) {
      server.replies = replies;
      return desk.client.submit("cart-1", { url: `${server.url}/v1/charges`, json: { amount: 1 }, ...request });
    },
    expectOneKey(attempts) {
      expect(server.arrived).toHaveLength(attempts);
      expect(new Set(server.arrived.map(({ headers }) => headers["idempotency-key"])).size).toBe(1);
      expect(new Set(server.arrived.map(({ body }) => body)).size).toBe(1);
    },
  };
}

/** Answers with a page. */
export const html = (status: number) => text(status, "<h1>Hello</h1>", { "content-type": "text/html; charset=utf-8" });

/** What the order comes to. */
export const done = json(201, { id: "ch_1" });
