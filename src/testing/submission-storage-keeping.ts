import assert from "node:assert/strict";
import {
  assertKeeps,
  largeSubmission,
  STRANGE_NAMES,
  type SubmissionStorageCase,
  storedSubmission,
} from "./submission-storage-harness.ts";

const SETTLED = storedSubmission("settled", {
  key: "k".repeat(255),
  firstSentAt: 1_767_225_600_001,
  attempts: 17,
  spentMs: 12_345.678,
  spentAt: 1_767_225_600_999,
  retentionMs: 86_400_000,
  request: {
    method: "PATCH",
    url: "https://api.example/ü?a=1&a=2#x",
    headers: [],
    bodyBase64: null,
    keyHeader: "Idempotency-Key",
  },
  settled: {
    kind: "refused",
    at: 1_767_225_601_000,
    replayed: true,
    status: 422,
    headers: [
      ["set-cookie", "a=1"],
      ["set-cookie", "b=2"],
      ["x-empty", ""],
    ],
    bodyBase64: "",
  },
});

/** What is put is there, whole, for everybody who shares the medium. */
export const keepingCases: readonly SubmissionStorageCase[] = [
  {
    name: "gives back every member of a submission as it was put",
    async run(harness) {
      const [one, other] = [await harness.open(), await harness.open()];
      const fresh = storedSubmission("fresh");
      for (const submission of [fresh, SETTLED]) await one.put(submission);
      await assertKeeps(one, [fresh, SETTLED]);
      await assertKeeps(other, [fresh, SETTLED]);
    },
  },
  {
    name: "keeps apart names of any script, length and meaning",
    async run(harness) {
      const [one, other] = [await harness.open(), await harness.open()];
      const all = STRANGE_NAMES.map((name, index) => storedSubmission(name, { attempts: index }));
      for (const submission of all) await one.put(submission);
      await assertKeeps(other, all);
    },
  },
  {
    name: "keeps a body of 1 MiB",
    async run(harness) {
      const [one, other] = [await harness.open(), await harness.open()];
      const large = largeSubmission("large", 1_048_576);
      await one.put(large);
      await assertKeeps(other, [large]);
    },
  },
  {
    name: "puts a submission whole in place of the older one of its name",
    async run(harness) {
      const [one, other] = [await harness.open(), await harness.open()];
      await one.put({ ...SETTLED, name: "again" });
      const smaller = storedSubmission("again", { attempts: 1 });
      await other.put(smaller);
      await assertKeeps(one, [smaller]);
    },
  },
  {
    name: "lets readers see the older or the newer one while it is put, never half of one",
    async run(harness) {
      const [one, other] = [await harness.open(), await harness.open()];
      const versions = [largeSubmission("v", 90_000), storedSubmission("v", { attempts: 1 })];
      const whole = new Set(versions.map((version) => JSON.stringify(version)));
      await one.put(versions[0] ?? storedSubmission("v"));
      let writing = true;
      const writer = (async () => {
        for (let round = 0; round < 40; round++) await one.put(versions[round % 2] ?? storedSubmission("v"));
        writing = false;
      })();
      let reads = 0;
      while (writing) {
        assert.ok(whole.has(JSON.stringify(await other.get("v"))), "half of one");
        assert.equal((await other.list()).length, 1);
        reads += 1;
        // A medium that answers without waiting must not keep the writer from its turn.
        await new Promise((resolve) => setTimeout(resolve, 0));
      }
      await writer;
      assert.ok(reads > 0);
    },
  },
  {
    name: "puts of many names beside each other all arrive",
    async run(harness) {
      const handles = [await harness.open(), await harness.open()];
      const all = Array.from({ length: 40 }, (_, index) => storedSubmission(`n${index}`));
      await Promise.all(all.map((submission, index) => handles[index % 2]?.put(submission)));
      for (const handle of handles) await assertKeeps(handle, all);
    },
  },
  {
    name: "is not changed by what is done to an object that was put or given",
    async run(harness) {
      const storage = await harness.open();
      const headers: [string, string][] = [["a", "1"]];
      const request = { ...storedSubmission("mine").request, headers };
      await storage.put(storedSubmission("mine", { request }));
      headers.push(["b", "2"]);
      const given = (await storage.get("mine")) as unknown as { attempts: number; request: { headers: string[][] } };
      given.attempts = 99;
      given.request.headers.pop();
      const kept = await storage.get("mine");
      assert.deepEqual([kept?.attempts, kept?.request.headers], [0, [["a", "1"]]]);
    },
  },
  {
    name: "is there again for a handle that is opened after the others are gone",
    async run(harness) {
      await (await harness.open()).put(SETTLED);
      await assertKeeps(await harness.open(), [SETTLED]);
    },
  },
];

/** What is absent, removed, damaged, or does not fit. */
export const missingCases: readonly SubmissionStorageCase[] = [
  {
    name: "has null and an empty list where nothing was put",
    async run(harness) {
      const storage = await harness.open();
      assert.deepEqual(await storage.list(), []);
      for (const name of STRANGE_NAMES) assert.equal(await storage.get(name), null);
    },
  },
  {
    name: "removes for everybody, its neighbours stay, and removing nothing does nothing",
    async run(harness) {
      const [one, other] = [await harness.open(), await harness.open()];
      await one.remove("gone");
      for (const name of ["gone", "stays"]) await one.put(storedSubmission(name));
      await Promise.all([one.remove("gone"), other.remove("gone"), other.remove("never there")]);
      await one.remove("gone");
      assert.equal(await other.get("gone"), null);
      await assertKeeps(other, [storedSubmission("stays")]);
      await one.put(storedSubmission("gone", { attempts: 2 }));
      assert.equal((await other.get("gone"))?.attempts, 2);
    },
  },
  {
    name: "raises for a damaged submission instead of taking it for a missing one, and lists the others",
    async run(harness) {
      const [one, other] = [await harness.open(), await harness.open()];
      for (const name of ["damaged", "sound"]) await one.put(storedSubmission(name));
      await harness.damage("damaged");
      await assert.rejects(other.get("damaged"), /cannot be read/);
      assert.deepEqual(await other.list(), [storedSubmission("sound")]);
      await assert.rejects(other.get("damaged"), /cannot be read/);
      await one.remove("damaged");
      assert.equal(await other.get("damaged"), null);
    },
  },
  {
    name: "raises when the medium is full, with the older one still whole, and goes on when there is room",
    timeoutMs: 60_000,
    async run(harness) {
      const [one, other] = [await harness.open(), await harness.open()];
      const kept = ["a", "b"].map((name) => storedSubmission(name));
      for (const submission of kept) await one.put(submission);
      await harness.fill();
      await assert.rejects(one.put(largeSubmission("a", 1_048_576)));
      await assert.rejects(one.put(largeSubmission("new", 1_048_576)));
      await assertKeeps(other, kept);
      await one.remove("b");
      await assertKeeps(other, kept.slice(0, 1));
    },
  },
];
