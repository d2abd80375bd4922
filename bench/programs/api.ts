/** The measured process: one variant behind `node:http`. It is told what to serve, and asked what it used. */
import { once as firstOf } from "node:events";
import { existsSync, readFileSync } from "node:fs";
import { createServer } from "node:http";
import { createRequire } from "node:module";
import type { AddressInfo } from "node:net";
import pg from "pg";
import { invoiceHandler } from "../invoice.ts";
import { answering } from "../program.ts";
import { variantOf } from "../variants/index.ts";
import type { OpenVariant } from "../variants/variant.ts";

/** What the process serves. */
export interface ApiSettings {
  readonly variant: string;
  readonly url: string;
  readonly poolSize: number;
  readonly answerBytes: number;
  readonly redisPort: number | null;
  /** The package.json of bench/peers. */
  readonly peers: string;
}

/** What is asked of the process. */
export type ApiAsk =
  | { readonly kind: "open"; readonly settings: ApiSettings }
  | { readonly kind: "usage" }
  /** Does the variant's work without HTTP for so long, with so many callers. */
  | { readonly kind: "call"; readonly callers: number; readonly forMs: number }
  | { readonly kind: "close" };

/** What the process used since it began: processor time, and memory at the most. */
export interface ApiUsage {
  readonly cpuMs: number;
  readonly peakRssBytes: number;
}

let opened: { readonly variant: OpenVariant; close(): Promise<void> } | null = null;
let calls = 0;

async function open(settings: ApiSettings): Promise<{ port: number; hasCall: boolean }> {
  const { url, poolSize, answerBytes, redisPort, peers } = settings;
  // Connections that ended between two slices would be made in the next one.
  const pool = new pg.Pool({ connectionString: url, max: poolSize, idleTimeoutMillis: 0 });
  pool.on("error", () => {});
  const load = createRequire(peers);
  const world = { url, pool, handler: invoiceHandler(answerBytes), redisPort, load };
  const variant = await variantOf(settings.variant).open(world);
  const server = createServer(variant.listener);
  // Between two slices the clients' connections are idle.
  server.keepAliveTimeout = 0;
  server.listen(0, "127.0.0.1");
  await firstOf(server, "listening");
  const close = async () => {
    server.closeAllConnections();
    server.close();
    await variant.close?.();
    await pool.end();
  };
  opened = { variant, close };
  return { port: (server.address() as AddressInfo).port, hasCall: variant.call !== undefined };
}

function usage(): ApiUsage {
  const { user, system } = process.cpuUsage();
  return { cpuMs: (user + system) / 1_000, peakRssBytes: peakRssBytes() };
}

/** `getrusage` would give the parent's, if that was larger when it forked: the kernel's own mark starts anew. Linux. */
function peakRssBytes(): number {
  const status = existsSync("/proc/self/status") ? readFileSync("/proc/self/status", "utf8") : "";
  const kib = /^VmHWM:\s*(\d+) kB$/m.exec(status)?.[1];
  return kib === undefined ? process.memoryUsage.rss() : Number(kib) * 1_024;
}

async function callFor(callers: number, forMs: number): Promise<{ requests: number; tookMs: number }> {
  const call = opened?.variant.call;
  if (call === undefined) throw new Error("The variant cannot be called without HTTP.");
  const beganAt = performance.now();
  const before = calls;
  const caller = async () => {
    while (performance.now() - beganAt < forMs) await call(`call-${process.pid}-${calls++}`);
  };
  await Promise.all(Array.from({ length: callers }, caller));
  return { requests: calls - before, tookMs: performance.now() - beganAt };
}

answering<ApiAsk>(async (ask) => {
  switch (ask.kind) {
    case "open":
      return open(ask.settings);
    case "usage":
      return usage();
    case "call":
      return callFor(ask.callers, ask.forMs);
    case "close":
      await opened?.close();
      return null;
  }
});
