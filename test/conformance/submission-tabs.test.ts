import strict from "node:assert/strict";
import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { BrowserContext, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { INSECURE_HOST, newProfile, openProfile, withChromium } from "../support/chromium.ts";
import { type PageStorage, serveStoragePages } from "./submission-hosts/chromium.ts";
import assert from "./submission-hosts/page-assert.ts";

const SECURE_HOST = "127.0.0.1";
const STORAGES: readonly PageStorage[] = ["indexedDB", "localStorage"];
/** As long as a lease lasts, and a little more. */
const LEASE_OVER_MS = 91_000;

describe("what stands in for node:assert in a page", () => {
  const values: readonly unknown[] = [
    ...[null, undefined, 0, -0, 1, Number.NaN, "", "0", "a", true, false],
    ...[[], {}, [undefined], { a: undefined }, { a: 1 }, { a: 1, b: [2, { c: null }] }, { b: [2, { c: null }], a: 1 }],
    ...[[1, 2], [2, 1], { 0: 1, 1: 2 }, [[]], [{}]],
  ];
  const throws = (run: () => void): boolean => {
    try {
      run();
      return false;
    } catch {
      return true;
    }
  };

  it("throws for every pair of values for which the real one throws, and for no other", () => {
    for (const one of values) {
      expect(throws(() => assert.ok(one))).toBe(throws(() => strict.ok(one)));
      for (const other of values) {
        for (const method of ["equal", "deepEqual"] as const) {
          const expected = throws(() => strict[method](one, other));
          expect([one, other, method, throws(() => assert[method](one, other))]).toEqual([
            one,
            other,
            method,
            expected,
          ]);
        }
      }
    }
  });

  it("refuses a promise that fulfils, or is rejected for another reason", async () => {
    await assert.rejects(Promise.reject(new Error("the one")), /the one/);
    await assert.rejects(Promise.reject(undefined));
    await strict.rejects(assert.rejects(Promise.resolve()));
    await strict.rejects(assert.rejects(Promise.reject(new Error("another")), /the one/));
  });
});

withChromium(() => {
  let port: number;
  let profile: BrowserContext;

  beforeAll(async () => {
    const server = await serveStoragePages();
    afterAll(() => server.close());
    port = server.port;
    profile = await newProfile();
  });

  const openTab = async (host = SECURE_HOST, context = profile): Promise<Page> => {
    const tab = await context.newPage();
    await tab.goto(`http://${host}:${port}/tab`);
    return tab;
  };
  const hold = (tab: Page, storage: PageStorage, name: string) => tab.evaluate(`hold("${storage}", "${name}")`);
  const tryLock = (tab: Page, storage: PageStorage, name: string, giveUpAfterMs = 50_000): Promise<unknown> =>
    tab.evaluate(`tryLock("${storage}", "${name}", ${giveUpAfterMs})`);

  for (const storage of STORAGES) {
    for (const host of [SECURE_HOST, INSECURE_HOST]) {
      it(`${storage}, at ${host}: each turn in a tab finds what the turn before it put, in whichever tab that was`, async () => {
        const context = await newProfile();
        const tabs = [await openTab(host, context), await openTab(host, context), await openTab(host, context)];
        const turns = host === SECURE_HOST ? 100 : 10;
        const inAll = (call: string) => Promise.all(tabs.map((tab) => tab.evaluate(call)));
        const added = new Set(((await inAll(`addTurns("${storage}", "added", ${turns})`)) as number[][]).flat());
        expect([added.size, Math.max(...added)]).toEqual([3 * turns, 3 * turns - 1]);
        const found = (await inAll(`flipTurns("${storage}", "flipped", ${turns})`)) as number[];
        expect(found.reduce((sum, one) => sum + one)).toBe((3 * turns) / 2);
        await context.close();
      });
    }

    describe(`tabs with ${storage} and Web Locks`, () => {
      const ends: Readonly<Record<string, (tab: Page) => Promise<unknown>>> = {
        "is closed": (tab) => tab.close(),
        "is loaded anew": (tab) => tab.reload(),
        crashes: crash,
      };
      for (const [how, end] of Object.entries(ends)) {
        it(`lets another tab in when the one that holds ${how}, and not before`, async () => {
          const [one, other] = [await openTab(), await openTab()];
          const name = `tab ${how}`;
          await hold(one, storage, name);
          expect(await tryLock(other, storage, name, 200)).toBe("gave up");
          const waiting = tryLock(other, storage, name);
          await end(one);
          expect(await waiting).toBe("entered");
          await other.close();
        });
      }

      it("shows a tab in its turn what another one put", async () => {
        const [one, other] = [await openTab(), await openTab()];
        const inside = (run: string) => `storages.${storage}.exclusively("shared", () => storages.${storage}.${run})`;
        await one.evaluate(inside('put(submission("shared"))'));
        expect(await other.evaluate(inside('get("shared")'))).toMatchObject({ name: "shared", key: "k-1" });
        expect(await other.evaluate(inside("list()"))).toMatchObject([{ name: "shared" }]);
      });
    });

    describe(`tabs with ${storage} and no Web Locks`, () => {
      it("has none there", async () => {
        expect(await (await openTab(INSECURE_HOST)).evaluate("navigator.locks === undefined")).toBe(true);
        expect(await (await openTab()).evaluate("navigator.locks === undefined")).toBe(false);
      });

      it("frees a lease at once when its page is left, and not before", async () => {
        const [one, other] = [await openTab(INSECURE_HOST), await openTab(INSECURE_HOST)];
        await hold(one, storage, "left");
        expect(await tryLock(other, storage, "left", 500)).toBe("gave up");
        const waiting = tryLock(other, storage, "left");
        await one.goto("about:blank");
        expect(await waiting).toBe("entered");
      });

      it("keeps a lease for as long as its page lives, and 90 s when it died", async () => {
        const context = await newProfile();
        await context.clock.install();
        const [one, other] = [await openTab(INSECURE_HOST, context), await openTab(INSECURE_HOST, context)];
        await hold(one, storage, "long");
        for (let passed = 0; passed < 3; passed++) {
          await context.clock.fastForward(60_000);
          expect(await tryLock(other, storage, "long", 500)).toBe("gave up");
        }
        await crash(one);
        await one.close();
        expect(await tryLock(other, storage, "long", 500)).toBe("gave up");
        await context.clock.fastForward(LEASE_OVER_MS);
        expect(await tryLock(other, storage, "long")).toBe("entered");
      });

      it("does not believe a lease for longer than one lasts, after the clock was set back", async () => {
        const [one, other] = [await openTab(INSECURE_HOST), await openTab(INSECURE_HOST)];
        await one.evaluate("{ const now = Date.now() + 30 * 86_400_000; Date.now = () => now; }");
        await hold(one, storage, "from the future");
        expect(await tryLock(other, storage, "from the future")).toBe("entered");
        await one.close();
      });
    });
  }

  describe("what IndexedDB keeps", () => {
    it("is there when the browser was killed right after a put, and opened again", async () => {
      const directory = await mkdtemp(join(tmpdir(), "oncekey-profile-"));
      const first = await openProfile(directory);
      const ended = new Promise((resolve) => first.once("close", resolve));
      await (await openTab(SECURE_HOST, first)).evaluate('storages.indexedDB.put(submission("kept"))');
      await killBrowser(directory);
      await ended;
      const second = await openProfile(directory);
      const kept = await (await openTab(SECURE_HOST, second)).evaluate("storages.indexedDB.list()");
      expect(kept).toMatchObject([{ name: "kept" }]);
      await second.close();
      await rm(directory, { recursive: true, force: true, maxRetries: 5 });
    });

    it("is written again by a page whose database was deleted by another tab, which need not wait", async () => {
      const context = await newProfile();
      const [one, other] = [await openTab(SECURE_HOST, context), await openTab(SECURE_HOST, context)];
      await one.evaluate('storages.indexedDB.put(submission("before"))');
      await other.evaluate(`new Promise((resolve, reject) => {
        const request = indexedDB.deleteDatabase("oncekey");
        request.onsuccess = resolve;
        request.onerror = reject;
      })`);
      expect(await one.evaluate("storages.indexedDB.list()")).toEqual([]);
      await one.evaluate('storages.indexedDB.put(submission("after"))');
      expect(await other.evaluate("storages.indexedDB.list()")).toMatchObject([{ name: "after" }]);
    });

    it("is gone when the user clears it, and the page goes on with an empty storage", async () => {
      const context = await newProfile();
      const one = await openTab(SECURE_HOST, context);
      const devtools = await context.newCDPSession(one);
      const origin = `http://${SECURE_HOST}:${port}`;
      for (let round = 0; round < 10; round++) {
        await one.evaluate('storages.indexedDB.put(submission("before"))');
        // Directly after it, so that now and then the connection ends in the middle of a transaction.
        await devtools.send("Storage.clearDataForOrigin", { origin, storageTypes: "all" });
        expect(await one.evaluate('storages.indexedDB.get("before")')).toBeNull();
        await one.evaluate('storages.indexedDB.put(submission("after"))');
        expect(await one.evaluate("storages.indexedDB.list()")).toMatchObject([{ name: "after" }]);
      }
    });

    it("is left alone, with the browser's own error, where a later version made the database", async () => {
      const one = await openTab(SECURE_HOST, await newProfile());
      await one.evaluate(`new Promise((resolve, reject) => {
        const request = indexedDB.open("oncekey", 7);
        request.onsuccess = () => resolve(request.result.close());
        request.onerror = reject;
      })`);
      const failures = 'Promise.all([1, 2].map(() => storages.indexedDB.get("x").catch((error) => error.name)))';
      expect(await one.evaluate(failures)).toEqual(["VersionError", "VersionError"]);
    });
  });
});

/** The page's process dies at once: none of its code runs any more. */
async function crash(tab: Page): Promise<void> {
  const crashed = new Promise((resolve) => tab.once("crash", resolve));
  tab.goto("chrome://crash").catch(() => {});
  await crashed;
}

/** Kills the processes of the browser that uses that profile, and no others. */
async function killBrowser(directory: string): Promise<void> {
  const pids: number[] = [];
  for (const entry of await readdir("/proc")) {
    const command = /^\d+$/.test(entry) ? await readFile(`/proc/${entry}/cmdline`, "utf8").catch(() => "") : "";
    if (command.includes(`--user-data-dir=${directory}`)) pids.push(Number(entry));
  }
  expect(pids.length).toBeGreaterThan(0);
  for (const pid of pids) {
    try {
      process.kill(pid, "SIGKILL");
    } catch {
      // It ended with another one of them.
    }
  }
  const alive = async () => {
    const states = pids.map((pid) => readFile(`/proc/${pid}/stat`, "utf8").catch(() => ") Z"));
    return (await Promise.all(states)).filter((stat) => stat.split(") ")[1]?.[0] !== "Z").length;
  };
  await vi.waitFor(async () => expect(await alive()).toBe(0), { timeout: 10_000 });
}
