import { mkdir, mkdtemp, readdir, rename, rm, stat, utimes, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileStorage } from "oncekey/client/file";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { type Gate, gate } from "../support/gate.ts";

const NAME = "cart-1";

let parent: string;
let directory: string;

beforeEach(async () => {
  parent = await mkdtemp(join(tmpdir(), "oncekey-lock-"));
  directory = join(parent, "submissions");
  await mkdir(directory);
});
afterEach(() => rm(parent, { recursive: true, force: true }));

const lock = () => fileStorage(directory).exclusively(NAME, async () => "inside");
const namesWith = async (ending: string) => (await readdir(directory)).filter((name) => name.endsWith(ending));

/** Holds the lock until the gate is opened; inside when this resolves. Gives the path of the lock, too. */
async function held(): Promise<{ end: Gate; done: Promise<void>; path: string }> {
  const [inside, end] = [gate(), gate()];
  const done = fileStorage(directory).exclusively(NAME, () => {
    inside.open();
    return end.promise;
  });
  await Promise.race([inside.promise, done]);
  const [path] = await namesWith(".lock");
  return { end, done, path: join(directory, path ?? "") };
}

/** The path at which the lock of that name lies while it is held. */
async function lockPath(): Promise<string> {
  const { end, done, path } = await held();
  end.open();
  await done;
  return path;
}

/** A socket as a killed process leaves it: still there, and nobody listens. */
async function deadSocket(path: string): Promise<void> {
  const server = createServer();
  const made = join(parent, "made");
  await new Promise<void>((done) => server.listen(made, done));
  await rename(made, path);
  await new Promise((done) => server.close(done));
}

async function anHourOld(path: string): Promise<void> {
  const then = new Date(Date.now() - 3_600_000);
  await utimes(path, then, then);
}

describe("a lock that somebody left", () => {
  const leave: Readonly<Record<string, (path: string) => Promise<void>>> = {
    "holding it": (path) => deadSocket(join(path, "0a1b2c")),
    "releasing it, the socket gone already": async () => {},
    "twice, after a crash of the machine": async (path) => {
      await deadSocket(join(path, "0a1b2c"));
      await deadSocket(join(path, "3d4e5f"));
    },
    "with a file in it that is no socket": (path) => writeFile(join(path, ".stray"), "x"),
  };
  for (const [how, make] of Object.entries(leave)) {
    it(`(${how}) is taken at once, and gone after that`, async () => {
      const path = await lockPath();
      await mkdir(path);
      await make(path);
      expect(await Promise.all([lock(), lock(), lock()])).toEqual(["inside", "inside", "inside"]);
      expect(await readdir(directory)).toEqual([]);
    });
  }

  it("is removed when the storage is first used, whatever its name", async () => {
    const path = join(directory, `${"f".repeat(32)}.lock`);
    await mkdir(path);
    await deadSocket(join(path, "0a1b2c"));
    await lock();
    expect(await readdir(directory)).toEqual([]);
  });

  it("is not removed while its holder lives, nor is the place of one who waits, however old", async () => {
    const { end, done, path } = await held();
    const waiting = lock();
    await vi.waitFor(async () => expect(await namesWith(".part")).toHaveLength(1));
    const [part] = await namesWith(".part");
    for (const one of [path, join(directory, part ?? "")]) await anHourOld(one);
    await fileStorage(directory).exclusively("another", async () => {});
    expect([await namesWith(".lock"), await namesWith(".part")]).toEqual([[path.split("/").at(-1)], [part]]);
    end.open();
    await done;
    expect(await waiting).toBe("inside");
  });
});

describe("a place in line that somebody left", () => {
  it("is removed when it is old and nobody listens, and not before", async () => {
    const [old, young, unfinished] = ["a", "b", "c"].map((name) => join(directory, `${name}.0123456789ab.part`));
    for (const path of [old, young, unfinished]) await mkdir(path ?? "");
    for (const path of [old, young]) await deadSocket(join(path ?? "", "0a1b2c"));
    for (const path of [old, unfinished]) await anHourOld(path ?? "");
    await lock();
    expect(await readdir(directory)).toEqual(["b.0123456789ab.part"]);
  });

  it("is made anew by one who finds it removed", async () => {
    const { end, done } = await held();
    const waiting = lock();
    await vi.waitFor(async () => expect(await namesWith(".part")).toHaveLength(1));
    for (const part of await namesWith(".part")) await rm(join(directory, part), { recursive: true });
    end.open();
    await done;
    expect(await waiting).toBe("inside");
    expect(await readdir(directory)).toEqual([]);
  });

  it("is removed by one who gives up", async () => {
    const { end, done, path } = await held();
    const [abort, reason] = [new AbortController(), new Error("enough")];
    const waiting = fileStorage(directory).exclusively(NAME, async () => {}, abort.signal);
    await vi.waitFor(async () => expect(await namesWith(".part")).toHaveLength(1));
    abort.abort(reason);
    await expect(waiting).rejects.toBe(reason);
    expect(await readdir(directory)).toEqual([path.split("/").at(-1)]);
    end.open();
    await done;
  });
});

describe("the lock's directory", () => {
  it("may have a path far longer than a socket's", async () => {
    directory = join(parent, "d".repeat(200), "submissions");
    const { end, done } = await held();
    const waiting = lock();
    await vi.waitFor(async () => expect(await namesWith(".part")).toHaveLength(1));
    const waits = fileStorage(directory).exclusively(NAME, async () => {}, AbortSignal.timeout(100));
    await expect(waits).rejects.toMatchObject({ name: "TimeoutError" });
    end.open();
    await done;
    expect(await waiting).toBe("inside");
    expect(await readdir(directory)).toEqual([]);
  });

  it("keeps others away from the sockets", async () => {
    const { end, done, path } = await held();
    expect((await stat(path)).mode & 0o777).toBe(0o700);
    end.open();
    await done;
  });

  it("may be removed under a holder, who does not mind", async () => {
    const { end, done } = await held();
    await rm(directory, { recursive: true });
    end.open();
    await done;
    expect(await lock()).toBe("inside");
  });
});
