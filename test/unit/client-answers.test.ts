import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { createClient } from "oncekey/client";
import { describe, expect, it } from "vitest";
import { clientDesk } from "../support/client-desk.ts";
import { clientOrders, done, html } from "../support/client-orders.ts";
import {
  type ClientServer,
  cut,
  json,
  problem,
  type Reply,
  silence,
  startClientServer,
  text,
} from "../support/client-server.ts";

const { submitTo, expectOneKey } = clientOrders();

describe("retried with the same key and bytes", () => {
  const halfOfTen: Reply = (response) => {
    response.writeHead(201, { "content-type": "application/json", "content-length": "10" });
    response.write('{"id"', () => response.socket?.destroy());
  };
  const chunksWithoutEnd: Reply = (response) => {
    response.writeHead(201, { "content-type": "application/json" });
    response.write('{"id"', () => response.socket?.destroy());
  };
  /** Without a length, closing the connection is the end of the body, and half of it looks whole. */
  const halfUntilClose: Reply = (response) => {
    response.socket?.end('HTTP/1.1 201 Created\r\ncontent-type: application/json\r\nconnection: close\r\n\r\n{"id"');
  };
  const cases: readonly (readonly [string, Reply, string])[] = [
    ["a connection cut before the answer", cut, "no_answer"],
    ["a body cut before its length", halfOfTen, "answer_cut"],
    ["chunks without an end", chunksWithoutEnd, "answer_cut"],
    ["half of a JSON body of unknown length", halfUntilClose, "answer_cut"],
    ["500", json(500, {}), "server_error"],
    ["502 with a page", html(502), "server_error"],
    ["503", json(503, {}), "server_error"],
    ["504", text(504, ""), "server_error"],
    ["408", text(408, ""), "server_error"],
    ["425", text(425, ""), "server_error"],
    ["429", json(429, {}), "too_many"],
    ["409 in progress", problem(409, "idempotency_in_progress", "same_key"), "in_progress"],
    ["409 outcome unknown", problem(409, "idempotency_outcome_unknown", "same_key"), "in_progress"],
    ["409 commit unknown", json(409, { code: "idempotency_commit_unknown" }), "in_progress"],
    ["409 with Retry-After", json(409, {}, { "retry-after": "1" }), "in_progress"],
    ["409 with an empty Retry-After", json(409, {}, { "retry-after": "" }), "in_progress"],
    ["422 of Adyen", json(422, { status: 422, errorCode: "704" }), "in_progress"],
    ["409 of Stripe", json(409, { error: { code: "idempotency_key_in_use" } }), "in_progress"],
    ["409 of Adyen", json(409, { status: 409, errorCode: "704" }), "in_progress"],
    ["409 of PayPal", json(409, { details: [{ issue: "PREVIOUS_REQUEST_IN_PROGRESS" }] }), "in_progress"],
    ["400 with Stripe-Should-Retry: true", json(400, {}, { "stripe-should-retry": "true" }), "server_error"],
    ["422 with transient-error: true", json(422, {}, { "transient-error": "true" }), "server_error"],
    ["503 of ours", problem(503, "idempotency_lease_lost", "same_key"), "server_error"],
    ["500 that advises a new key", problem(500, "idempotency_forged", "new_key"), "server_error"],
  ];
  it.each(cases)("%s", async (_, reply, why) => {
    const desk = clientDesk();
    expect(await submitTo([reply, reply, done], desk)).toMatchObject({ kind: "succeeded", replayed: false });
    expectOneKey(3);
    expect(desk.told().filter((kind) => kind.startsWith("pause"))).toEqual([`pause: ${why}`, `pause: ${why}`]);
  });

  it("an attempt that takes too long", async () => {
    expect(await submitTo([silence, done], clientDesk({ attemptTimeoutMs: 50 }))).toMatchObject({ kind: "succeeded" });
    expectOneKey(2);
  });

  it("a body that drips for too long", async () => {
    const drip: Reply = (response) => {
      response.writeHead(201, { "content-type": "application/json" }).write("{");
    };
    const desk = clientDesk({ attemptTimeoutMs: 50 });
    expect(await submitTo([drip, done], desk)).toMatchObject({ kind: "succeeded" });
    expect(desk.told()).toContain("pause: answer_cut");
    expectOneKey(2);
  });

  it("a fetch of the caller's that knows no signal and lets a short answer pass", async () => {
    const ends = [
      () => new Promise<Response>(() => {}),
      async () => new Response("{}", { status: 201, headers: { "content-length": "10" } }),
      async () => new Response("{}", { status: 201, headers: { "content-length": "2" } }),
    ];
    const desk = clientDesk({ attemptTimeoutMs: 20, fetch: () => (ends.shift() as () => Promise<Response>)() });
    expect(await submitTo([], desk)).toMatchObject({ kind: "succeeded" });
    expect(desk.told().filter((kind) => kind.startsWith("pause"))).toEqual(["pause: no_answer", "pause: answer_cut"]);
  });

  it("a server that is not there yet", async () => {
    const port = (await closedPort()).port;
    const desk = clientDesk({ onEvent: () => {} });
    let started: ClientServer | undefined;
    const client = createClient({
      storage: desk.storage,
      minPauseMs: 1,
      maxPauseMs: 5,
      onEvent: ({ kind }) => {
        if (kind !== "pause" || started !== undefined) return;
        void startServerOn(port).then((own) => {
          started = own;
        });
      },
    });
    const result = await client.submit("cart-1", { url: `http://127.0.0.1:${port}/`, json: 1 });
    expect(result).toMatchObject({ kind: "succeeded" });
    expect(started?.arrived).toHaveLength(1);
    await started?.close();
  });
});

async function closedPort(): Promise<AddressInfo> {
  const taken = createServer();
  await new Promise<void>((ready) => taken.listen(0, "127.0.0.1", ready));
  const address = taken.address() as AddressInfo;
  await new Promise((ready) => taken.close(ready));
  return address;
}

const startServerOn = (port: number) => startClientServer(port);
