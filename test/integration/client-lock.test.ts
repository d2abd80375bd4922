import { type ChildProcess, spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { connect, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileStorage } from "oncekey/client/file";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { bundledWorker } from "./support/bundled-worker.ts";
import { type Contender, contenderEnv, startContender } from "./support/client-contenders.ts";
import { ended } from "./support/workers.ts";

const NAME = "cart-1";
const FOREVER = 1_000_000;

let parent: string;
let directory: string;
const children = new Set<ChildProcess>();

beforeEach(async () => {
  parent = await mkdtemp(join(tmpdir(), "oncekey-lock-"));
  directory = join(parent, "submissions");
});
afterEach(async () => {
  await Promise.all([...children].map(ended));
  children.clear();
  await rm(parent, { recursive: true, force: true });
});

async function contender(rounds = FOREVER): Promise<Contender> {
  const started = await startContender({ directory, name: NAME, rounds });
  children.add(started.child);
  return started;
}

/** One that is inside now, and does not leave. */
async function holder(): Promise<Contender> {
  const started = await contender();
  expect(await started.next()).toBe("entered");
  return started;
}

/** What becomes of a wait for the lock that is given up when `until` resolves. */
async function tryLock(until: Promise<unknown>): Promise<"entered" | "gave up"> {
  const abort = new AbortController();
  void until.then(() => abort.abort());
  try {
    return await fileStorage(directory).exclusively(NAME, async () => "entered" as const, abort.signal);
  } catch (error) {
    if (error !== abort.signal.reason) throw error;
    return "gave up";
  }
}

const forAWhile = () => new Promise((resolve) => setTimeout(resolve, 300));

/** Eight processes; keeps count of who is inside. Those that it killed are inside no more. */
async function contend(entries: number, kills: { inside: number; anywhere: number }) {
  const inside = new Set<Contender>();
  const alive = new Set<Contender>();
  const seen = { entries: 0, killed: 0, most: 0 };
  const kill = (one: Contender) => {
    inside.delete(one);
    alive.delete(one);
    seen.killed += 1;
    one.child.kill("SIGKILL");
  };
  const follow = async (one: Contender): Promise<void> => {
    for (let message = await one.next(); message !== null; message = await one.next()) {
      if (!alive.has(one)) continue;
      if (message === "entered") {
        inside.add(one);
        seen.entries += 1;
        seen.most = Math.max(seen.most, inside.size);
        if (seen.entries % kills.anywhere === 0) kill([...alive][seen.entries % alive.size] ?? one);
        else if (seen.entries % kills.inside === 0) kill(one);
      }
      if (message === "leaving") inside.delete(one);
      if (seen.entries >= entries) kill(one);
      else if (alive.has(one) && message !== "left") one.go();
    }
    if (seen.entries < entries) return run();
  };
  const run = async () => {
    const one = await contender();
    alive.add(one);
    await follow(one);
  };
  const all = Promise.all(Array.from({ length: 8 }, run));
  await vi.waitFor(() => expect(seen.entries).toBeGreaterThanOrEqual(entries), { timeout: 100_000, interval: 50 });
  for (const one of alive) kill(one);
  await all;
  return seen;
}

describe("the lock of a file storage, over real processes", () => {
  it("lets never two inside and always one in, while holders and waiters are killed at any moment", async () => {
    const seen = await contend(600, { inside: 11, anywhere: 7 });
    expect(seen.most).toBe(1);
    expect(seen.killed).toBeGreaterThan(100);
    expect(await tryLock(new Promise(() => {}))).toBe("entered");
  }, 120_000);

  it("is free at once when its holder was killed, with no time-out, and wakes who waits", async () => {
    const first = await holder();
    const waiting = tryLock(new Promise(() => {}));
    await vi.waitFor(async () => expect(await parts()).toHaveLength(1));
    await ended(first.child);
    expect(await waiting).toBe("entered");
  });

  it("is held by a process that is stopped, for as long as it is, and by nobody else after that", async () => {
    const first = await holder();
    first.child.kill("SIGSTOP");
    expect(await tryLock(forAWhile())).toBe("gave up");
    first.child.kill("SIGCONT");
    first.go();
    expect(await first.next()).toBe("leaving");
    expect(await tryLock(forAWhile())).toBe("gave up");
    const second = await contender();
    first.go();
    expect(await first.next()).toBe("left");
    const entered = await Promise.race([first.next(), second.next()]);
    expect(entered).toBe("entered");
  });

  it("is held by a stopped process that so many wait for that the system lets no more in line", async () => {
    const first = await holder();
    first.child.kill("SIGSTOP");
    const path = await socketOf();
    const line: Socket[] = [];
    try {
      for (let full = false; !full; ) full = !(await joinLine(path, line));
      expect(line.length).toBeGreaterThan(100);
      expect(await tryLock(forAWhile())).toBe("gave up");
      const waiting = tryLock(new Promise(() => {}));
      await ended(first.child);
      expect(await waiting).toBe("entered");
    } finally {
      for (const socket of line) socket.destroy();
    }
  });

  it("is free when its holder is dead but not yet buried", async (context) => {
    if (!existsSync("/proc/self/stat")) context.skip("there is no /proc to see a zombie in");
    const { undertaker, pid } = await zombieHolder();
    try {
      expect(await stateOf(pid)).toBe("Z");
      expect(await tryLock(new Promise(() => {}))).toBe("entered");
      expect(await stateOf(pid)).toBe("Z");
    } finally {
      await ended(undertaker);
    }
  });

  it("leaves nothing behind when all are done", async () => {
    const all = await Promise.all(Array.from({ length: 4 }, () => contender(5)));
    const rounds = all.map(async (one) => {
      for (let message = await one.next(); message !== null; message = await one.next())
        if (message !== "left") one.go();
    });
    await Promise.all(rounds);
    expect(await readdir(directory)).toEqual([]);
  });
});

async function parts(): Promise<string[]> {
  return (await readdir(directory)).filter((name) => name.endsWith(".part"));
}

async function socketOf(): Promise<string> {
  const [lock] = (await readdir(directory)).filter((name) => name.endsWith(".lock"));
  const path = join(directory, lock ?? "");
  return join(path, (await readdir(path))[0] ?? "");
}

function joinLine(path: string, line: Socket[]): Promise<boolean> {
  return new Promise((resolve, reject) => {
    const socket = connect(path);
    line.push(socket);
    socket.once("connect", () => resolve(true));
    socket.once("error", (error: NodeJS.ErrnoException) => (error.code === "EAGAIN" ? resolve(false) : reject(error)));
  });
}

/** A holder whose parent never asks how it ended: killed, it stays in the table of processes. */
async function zombieHolder(): Promise<{ undertaker: ChildProcess; pid: number }> {
  const program = await bundledWorker("client-contender");
  const script = `"${process.execPath}" "${program}" & echo $!; exec sleep 600`;
  const undertaker = spawn("sh", ["-c", script], {
    env: contenderEnv({ directory, name: NAME, rounds: 1 }),
    stdio: ["ignore", "pipe", "ignore"],
  });
  children.add(undertaker);
  const pid = Number(await new Promise((resolve) => undertaker.stdout?.once("data", resolve)));
  // Nobody answers it, so it stays inside.
  await vi.waitFor(async () => expect(existsSync(await socketOf())).toBe(true), { timeout: 20_000 });
  process.kill(pid, "SIGKILL");
  await vi.waitFor(async () => expect(await stateOf(pid)).toBe("Z"));
  return { undertaker, pid };
}

async function stateOf(pid: number): Promise<string | undefined> {
  return (await readFile(`/proc/${pid}/stat`, "utf8")).split(") ")[1]?.[0];
}
