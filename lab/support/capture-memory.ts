import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { bundle } from "../../test/support/bundle.ts";
import type { MemoryFigures, MemoryServerSettings } from "./capture-memory-server.ts";

const PROGRAM = fileURLToPath(new URL("./capture-memory-server.ts", import.meta.url));

/** A running program of capture-memory-server.ts. */
export interface MemoryServer {
  readonly port: number;
  figures(): Promise<MemoryFigures>;
  /** The same, and counts peaks from now on. */
  reset(): Promise<MemoryFigures>;
  close(): Promise<void>;
}

/** Starts the program. */
export async function startMemoryServer(settings: MemoryServerSettings): Promise<MemoryServer> {
  const outDir = await mkdtemp(join(tmpdir(), "oncekey-lab-"));
  await bundle({ programs: { server: PROGRAM }, outDir });
  const child = fork(join(outDir, "server.mjs"), { execArgv: ["--expose-gc"] });
  const ask = async (message: object | string) => {
    child.send(message);
    return answerOf(child);
  };
  const { port } = (await ask(settings)) as { port: number };
  return {
    port,
    figures: async () => (await ask("figures")) as MemoryFigures,
    reset: async () => (await ask("reset")) as MemoryFigures,
    async close() {
      const gone = once(child, "exit");
      child.disconnect();
      await gone;
      await rm(outDir, { recursive: true, force: true });
    },
  };
}

async function answerOf(child: ChildProcess): Promise<unknown> {
  const gone = new AbortController();
  const died = once(child, "exit", gone).then(() => {
    throw new Error("The program ended.");
  });
  try {
    const [answer] = await Promise.race([once(child, "message", gone), died]);
    return answer;
  } finally {
    died.catch(() => {});
    gone.abort();
  }
}

/** Sends a request and reads its answer to the end; resolves with status and length of the body. */
async function ask(port: number, path: string, key: string): Promise<{ status: number; length: number }> {
  const socket = connect(port, "127.0.0.1");
  const lines = [
    `POST ${path} HTTP/1.1`,
    "Host: a",
    "Connection: close",
    "Content-Length: 0",
    `Idempotency-Key: ${key}`,
  ];
  socket.write(`${lines.join("\r\n")}\r\n\r\n`);
  let head = "";
  let length = 0;
  for await (const chunk of socket as AsyncIterable<Buffer>) {
    const end = head.includes("\r\n\r\n") ? 0 : chunk.indexOf("\r\n\r\n") + 4;
    if (end > 0) head += chunk.subarray(0, end).toString("latin1");
    length += chunk.length - end;
  }
  return { status: Number(head.split(" ")[1]), length };
}

/** What a round of requests took, in bytes. */
export interface Measured {
  /** Answers that were not what the handler made. */
  readonly wrong: number;
  /** Heap and buffers at the most, over what they were before. */
  readonly grownBy: number;
  readonly rssGrownBy: number;
  /** The recording's own account: at the most, and afterwards. */
  readonly peakHeld: number;
  readonly held: number;
  readonly openFiles: number;
}

/** Sends requests of keys of their own at one instant, and measures what answering them took. */
export async function measure(server: MemoryServer, path: string, count: number, length: number): Promise<Measured> {
  const before = await server.reset();
  const round = `${path}-${before.rss}-${count}`;
  const keys = Array.from({ length: count }, (_, n) => `${round}-${n}`);
  const answers = await Promise.all(keys.map((key) => ask(server.port, path, key)));
  const after = await server.figures();
  return {
    wrong: answers.filter((answer) => answer.status !== 200 || answer.length !== length).length,
    grownBy: after.peakInUse - before.inUse,
    rssGrownBy: after.peakRss - before.rss,
    peakHeld: after.peakHeld,
    held: after.held,
    openFiles: after.openFiles,
  };
}
