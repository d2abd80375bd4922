import { randomUUID } from "node:crypto";
import { brotliDecompressSync, gunzipSync, inflateSync } from "node:zlib";
import { createOncekey, type Operation, type Scope } from "oncekey";
import { memoryStore } from "oncekey/memory";
import { describe, expect, it } from "vitest";
import { post, type WireAnswer } from "./raw.ts";
import { WAYS, type Way, type WaysOf } from "./ways.ts";

/** Routes that a framework serves for one way: `plain`, as if there were no Oncekey, and `once`. */
export interface Mount {
  readonly way: Way;
  readonly plain: string;
  readonly once: string;
}

/** How capture routes are bound: the same for every framework. */
export interface Captured {
  readonly operation: Operation<"capture">;
  readonly scope: () => Scope;
  /** To be called by the handler whenever it runs on a `once` route. */
  ran(): void;
}

/** A framework in the matrix. */
export interface CaptureHost<Answering> {
  readonly name: string;
  readonly ways: WaysOf<Answering>;
  /** Serves the mounts; ways that are texts are never asked for. */
  serve(mounts: readonly Mount[], captured: Captured): Promise<{ readonly port: number; close(): Promise<unknown> }>;
}

const REPLAYED = [
  "content-type",
  "content-language",
  "content-disposition",
  "content-location",
  "location",
  "etag",
  "link",
  "last-modified",
  "retry-after",
];

/** What no two answers have in common, or what framing says in two ways. */
const FREE = ["date", "connection", "keep-alive", "transfer-encoding", "content-length", "trailer"];

/** Registers the row of a framework: every way over a raw socket, without Oncekey, executed, and replayed. */
export function captureRow<Answering>(host: CaptureHost<Answering>): void {
  describe(`capture: ${host.name}`, () => {
    for (const way of WAYS) {
      const answering = host.ways[way];
      if (typeof answering === "string") it(`${way} (lacking: ${answering})`, () => {});
      else it(way, () => compared(host, way));
    }
  });
}

async function compared<Answering>(host: CaptureHost<Answering>, way: Way): Promise<void> {
  const once = createOncekey({ store: memoryStore(), onError: () => {} });
  const operation = once.capture({
    name: "capture",
    version: 1,
    reconcile: async () => ({ kind: "unknown", why: "" }),
  });
  let runs = 0;
  const captured: Captured = { operation, scope: () => ({ tenant: "acme", client: null }), ran: () => void runs++ };
  await once.start();
  const { port, close } = await host.serve([{ way, plain: "/plain", once: "/once" }], captured);
  try {
    const key = [["idempotency-key", randomUUID()]] as const;
    const plain = await post(port, "/plain");
    const first = await post(port, "/once", key);
    const again = await post(port, "/once", key);
    expect(runs).toBe(1);
    expectSame(plain, first);
    expectReplay(first, again);
  } finally {
    await close();
    await once.close();
  }
}

/** Whether a handler's own answer went out as it would have without Oncekey. */
function expectSame(plain: WireAnswer, first: WireAnswer): void {
  const told = ({ headers, status, reason, trailers, early }: WireAnswer) => ({
    status,
    reason,
    trailers,
    early,
    headers: headers
      .filter(([name]) => !FREE.includes(name))
      .map(spelled)
      .toSorted(),
  });
  expect(told(first)).toEqual(told(plain));
  expect(representation(first).equals(representation(plain))).toBe(true);
}

/** Light responses of servers and the platform's own spell the type of a text in two ways. */
function spelled([name, value]: readonly [string, string]): readonly [string, string] {
  return name === "content-type" ? [name, value.replace(/;\s*charset=/i, "; charset=")] : [name, value];
}

/** Whether a replay has the executor's status, bytes and allowed headers, says that it is one, and nothing more. */
function expectReplay(first: WireAnswer, again: WireAnswer): void {
  expect(again.status).toBe(first.status);
  expect(representation(again).equals(representation(first))).toBe(true);
  const kept = ({ headers }: WireAnswer) =>
    headers
      .filter(([name]) => REPLAYED.includes(name))
      .map(spelled)
      .toSorted();
  expect(kept(again)).toEqual(kept(first));
  const valuesOf = (name: string) => again.headers.filter(([other]) => other === name).map(([, value]) => value);
  expect(valuesOf("idempotent-replayed")).toEqual(["true"]);
  expect(first.headers.some(([name]) => name === "idempotent-replayed")).toBe(false);
  expect(valuesOf("set-cookie")).toEqual([]);
  expect(again.trailers).toEqual([]);
}

/** The bytes that an answer stands for: two of the same content need not be compressed alike. */
function representation({ headers, body }: WireAnswer): Buffer {
  const coding = headers.find(([name]) => name === "content-encoding")?.[1];
  if (body.length === 0 || coding === undefined) return body;
  const decoders = { gzip: gunzipSync, deflate: inflateSync, br: brotliDecompressSync };
  return decoders[coding as keyof typeof decoders](body);
}
