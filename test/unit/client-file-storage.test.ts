import { createHash } from "node:crypto";
import { copyFile, mkdir, mkdtemp, readdir, readFile, rm, stat, utimes, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createClient, type StoredSubmission, type SubmissionResult } from "oncekey/client";
import { fileStorage } from "oncekey/client/file";
import { afterEach, beforeEach, describe, expect, it } from "vitest";

let parent: string;
let directory: string;

beforeEach(async () => {
  parent = await mkdtemp(join(tmpdir(), "oncekey-file-"));
  directory = join(parent, "deep", "submissions");
});
afterEach(() => rm(parent, { recursive: true, force: true }));

const submission = (name: string, attempts = 0): StoredSubmission => ({
  form: 1,
  name,
  key: "k-1",
  request: {
    method: "POST",
    url: "https://api.example/v1/charges",
    headers: [],
    bodyBase64: null,
    keyHeader: "Idempotency-Key",
  },
  createdAt: 1,
  firstSentAt: null,
  attempts,
  spentMs: 0,
  spentAt: 1,
  retentionMs: null,
  settled: null,
});

const fileOf = (name: string): string =>
  join(directory, `${createHash("sha256").update(JSON.stringify(name)).digest("hex")}.json`);

const modeOf = async (path: string): Promise<number> => (await stat(path)).mode & 0o777;

async function anHourOld(path: string): Promise<void> {
  const then = new Date(Date.now() - 3_600_000);
  await utimes(path, then, then);
}

/** What the listener for unreadable files was told, and the names in the list. */
async function listed(): Promise<{ names: string[]; told: string[] }> {
  const told: string[] = [];
  const all = await fileStorage(directory, { onUnreadable: ({ message }) => told.push(message) }).list();
  return { names: all.map(({ name }) => name).sort(), told };
}

describe("fileStorage", () => {
  it("names files by a digest, never by the name, and lets nobody but the owner read them", async () => {
    const name = "../customer 42's cart";
    await fileStorage(directory).put(submission(name));
    expect(await readdir(directory)).toEqual([fileOf(name).slice(directory.length + 1)]);
    expect(await readdir(parent)).toEqual(["deep"]);
    expect([await modeOf(directory), await modeOf(join(parent, "deep"))]).toEqual([0o700, 0o700]);
    expect(await modeOf(fileOf(name))).toBe(0o600);
  });

  it("makes nothing before something is kept", async () => {
    const storage = fileStorage(directory);
    expect([await storage.get("a"), await storage.list()]).toEqual([null, []]);
    await storage.remove("a");
    expect(await readdir(parent)).toEqual([]);
  });

  it("stays with its directory when the process changes its own, and makes a removed one again", async () => {
    const before = process.cwd();
    try {
      process.chdir(parent);
      const storage = fileStorage("deep/submissions");
      process.chdir(tmpdir());
      await storage.put(submission("a"));
      await rm(directory, { recursive: true });
      await storage.put(submission("b"));
      expect(await storage.exclusively("b", async () => "inside")).toBe("inside");
    } finally {
      process.chdir(before);
    }
    expect(await listed()).toEqual({ names: ["b"], told: [] });
  });

  it("removes parts of files that a dead process left, and leaves those alone that may be at work", async () => {
    await mkdir(directory, { recursive: true });
    const [old, young] = [`${fileOf("a")}.0123456789ab.part`, `${fileOf("b")}.0123456789ab.part`];
    for (const path of [old, young]) await writeFile(path, '{"form":1');
    await anHourOld(old);
    await fileStorage(directory).put(submission("c"));
    expect((await readdir(directory)).sort()).toEqual([fileOf("c"), young].map((one) => one.split("/").at(-1)).sort());
    expect(await listed()).toEqual({ names: ["c"], told: [] });
  });

  it("raises what the system raises where the directory cannot be made, and works once it can", async () => {
    await writeFile(join(parent, "deep"), "a file in the way");
    const storage = fileStorage(directory);
    await expect(storage.put(submission("a"))).rejects.toMatchObject({ code: "ENOTDIR" });
    await expect(storage.exclusively("a", async () => "inside")).rejects.toMatchObject({ code: "ENOTDIR" });
    await rm(join(parent, "deep"));
    await storage.put(submission("a"));
    expect(await listed()).toEqual({ names: ["a"], told: [] });
  });
});

describe("a client whose storage fails", () => {
  /** What a client makes of it, and how often it sent. */
  async function submitted(name: string): Promise<{ result: SubmissionResult; sent: number }> {
    let sent = 0;
    const send = async () => {
      sent += 1;
      return Response.json({});
    };
    const client = createClient({ storage: fileStorage(directory), fetch: send });
    return { result: await client.submit(name, { url: "https://api.example/v1/charges", json: {} }), sent };
  }

  it("sends nothing where the directory cannot be made, and says why", async () => {
    await writeFile(join(parent, "deep"), "a file in the way");
    const { result, sent } = await submitted("a");
    expect([result, sent]).toMatchObject([{ kind: "not_kept", cause: { code: "ENOTDIR" } }, 0]);
  });

  it("sends nothing under a name whose file is damaged: it may have been carried out already", async () => {
    expect(await submitted("a")).toMatchObject({ result: { kind: "succeeded" }, sent: 1 });
    await writeFile(fileOf("a"), '{"form":1');
    const { result, sent } = await submitted("a");
    expect([result, sent]).toMatchObject([{ kind: "not_kept", cause: { code: "oncekey_store_broken" } }, 0]);
    expect(await readFile(fileOf("a"), "utf8")).toBe('{"form":1');
    expect(await submitted("b")).toMatchObject({ result: { kind: "succeeded" }, sent: 1 });
  });
});

describe("a file that cannot be read", () => {
  const spoiled: Readonly<Record<string, string>> = {
    "cut short": JSON.stringify(submission("a")).slice(0, 60),
    empty: "",
    "no object": "null",
    "of another layout": JSON.stringify({ ...submission("a"), form: 2 }),
    "of another submission": JSON.stringify(submission("b")),
    "without a key": JSON.stringify({ ...submission("a"), key: undefined }),
  };
  for (const [what, text] of Object.entries(spoiled)) {
    it(`(${what}) is told of by its path, not by its name or content, and left as it is`, async () => {
      const storage = fileStorage(directory);
      await storage.put(submission("sound"));
      await writeFile(fileOf("a"), text);
      const failure: unknown = await storage.get("a").catch((error: unknown) => error);
      const message = String((failure as Error).message);
      expect(message).toContain(fileOf("a"));
      expect(message).toContain("It was left as it is");
      expect(message).not.toContain("k-1");
      expect(await listed()).toEqual({ names: ["sound"], told: [message] });
      expect(await readFile(fileOf("a"), "utf8")).toBe(text);
    });
  }

  it("is not found under a name that is not its own", async () => {
    await fileStorage(directory).put(submission("a"));
    await copyFile(fileOf("a"), join(directory, "copy.json"));
    const { names, told } = await listed();
    expect([names, told.length]).toEqual([["a"], 1]);
    expect(told[0]).toContain("copy.json");
  });

  it("is a warning of the process where nobody else wants to know", async () => {
    await mkdir(directory, { recursive: true });
    await writeFile(fileOf("a"), "");
    const warned = new Promise<Error>((resolve) => process.once("warning", resolve));
    expect(await fileStorage(directory).list()).toEqual([]);
    expect(await warned).toMatchObject({ name: "OncekeyWarning", message: expect.stringContaining(fileOf("a")) });
  });
});
