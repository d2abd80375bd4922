/**
 * A program of its own, whose memory is watched: two captured routes over a PostgreSQL, one that streams, one that answers
 * in one piece. What the handlers answer lies in memory once, however many they are: what grows is what recording takes.
 */
import { randomBytes } from "node:crypto";
import { once as firstOf } from "node:events";
import { mkdtempSync, readdirSync, readlinkSync, rmSync } from "node:fs";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable } from "node:stream";
import express from "express";
import { createOncekey } from "oncekey";
import { fileBodyStore } from "oncekey/bodies/file";
import { fromPg } from "oncekey/drivers/pg";
import { idempotent } from "oncekey/express";
import { postgresStore } from "oncekey/postgres";
import pg from "pg";
import { recordingLimits } from "../../src/http/recording-limits.ts";

/** What the program is told. */
export interface MemoryServerSettings {
  readonly url: string;
  readonly maxRecordingBytes: number;
  readonly streamBytes: number;
  readonly blockBytes: number;
  /** So many requests for blocks are answered at one instant, when all of them are there. */
  readonly blocksAtOnce: number;
}

/** What the program says of itself, in bytes. */
export interface MemoryFigures {
  readonly rss: number;
  /** Heap and buffers together, now. */
  readonly inUse: number;
  /** The most of it since the last `reset`. */
  readonly peakInUse: number;
  readonly peakRss: number;
  /** The recording's own account. */
  readonly held: number;
  readonly peakHeld: number;
  readonly openFiles: number;
}

const PIECE = 65_536;

const usage = () => {
  const { rss, heapUsed, external } = process.memoryUsage();
  return { rss, inUse: heapUsed + external };
};

function openFiles(): number {
  const named = readdirSync("/proc/self/fd").map((fd) => {
    try {
      return readlinkSync(`/proc/self/fd/${fd}`);
    } catch {
      return "";
    }
  });
  return named.filter((name) => name.includes("/oncekey-") && name.endsWith("(deleted)")).length;
}

async function serve(settings: MemoryServerSettings): Promise<void> {
  const bodies = mkdtempSync(join(tmpdir(), "oncekey-lab-bodies-"));
  process.once("exit", () => rmSync(bodies, { recursive: true, force: true }));
  const pool = new pg.Pool({ connectionString: settings.url, max: 10 });
  pool.on("error", () => {});
  const once = createOncekey({
    store: postgresStore(fromPg(pool)),
    maxRecordingBytes: settings.maxRecordingBytes,
    bodyStore: fileBodyStore({ directory: bodies }),
    leaseMs: 60_000,
  });
  const reconcile = async () => ({ kind: "unknown", why: "never asked" }) as const;
  const wrap = once.capture({ name: "lab.capture", version: 1, maxDurationMs: 600_000, reconcile });
  await once.start();
  const scope = () => ({ tenant: "lab", client: null });
  const app = express();
  const piece = randomBytes(PIECE);
  const block = randomBytes(settings.blockBytes);
  app.post("/stream", idempotent(wrap, { scope }), (_req, res) => {
    Readable.from(Array.from({ length: settings.streamBytes / PIECE }, () => piece)).pipe(res);
  });
  const waiting: (() => void)[] = [];
  app.post("/block", idempotent(wrap, { scope }), async (_req, res) => {
    await new Promise<void>((resolve) => {
      waiting.push(resolve);
      if (waiting.length === settings.blocksAtOnce) for (const goOn of waiting.splice(0)) goOn();
    });
    res.end(block);
  });
  const server = app.listen(0, "127.0.0.1");
  await firstOf(server, "listening");
  const { budget } = recordingLimits(wrap.engine.settings);
  let peak = usage();
  const sample = () => {
    const now = usage();
    peak = { rss: Math.max(peak.rss, now.rss), inUse: Math.max(peak.inUse, now.inUse) };
  };
  setInterval(sample, 5).unref();
  process.on("message", (message) => {
    globalThis.gc?.();
    if (message === "reset") peak = usage();
    else sample();
    const figures: MemoryFigures = {
      ...usage(),
      peakInUse: peak.inUse,
      peakRss: peak.rss,
      held: budget.heldBytes,
      peakHeld: budget.peakBytes,
      openFiles: openFiles(),
    };
    process.send?.(figures);
  });
  process.send?.({ port: (server.address() as AddressInfo).port });
}

process.once("disconnect", () => process.exit(0));
process.once("message", (settings) => void serve(settings as MemoryServerSettings));
