import type { RunKind } from "oncekey";
import { fromPg } from "oncekey/drivers/pg";
import { changeLayout } from "oncekey/postgres";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { testPool } from "../support/postgres.ts";
import { RUN_KINDS } from "./support/orders.ts";
import { effects, entries, ordersDatabase } from "./support/rows.ts";
import { startWorkers, type Worker, type WorkerAnswer } from "./support/workers.ts";

const PROCESSES = 16;
const KEYS = 40;
const MIXED_KEYS = 20;
const BATCH = 10;

let url: string;
let fleet: Worker[];

const keys = (prefix: string, count: number) => Array.from({ length: count }, (_, index) => `${prefix}-${index}`);
const kinds = (answers: readonly WorkerAnswer[]) => [...new Set(answers.map(({ kind }) => kind))].sort();
const [first, second, third] = [0, 1, 2].map((index) => () => fleet[index] as Worker) as [
  () => Worker,
  () => Worker,
  () => Worker,
];

/** Several keys are raced side by side: the processes then meet in ever other orders, and waits overlap. */
async function inBatches(all: readonly string[], raceOne: (key: string, round: number) => Promise<void>) {
  for (let start = 0; start < all.length; start += BATCH) {
    await Promise.all(all.slice(start, start + BATCH).map((key, index) => raceOne(key, start + index)));
  }
}

/** Every process runs the key at the same time; `amountOf` tells with which payload. */
function race(kind: RunKind, key: string, amountOf: (index: number) => number): Promise<WorkerAnswer[]> {
  return Promise.all(fleet.map((worker, index) => worker.run({ kind, key, amount: amountOf(index) })));
}

/** The kinds that claim by a statement of its own, which may be merged with others. */
const CLAIMING: readonly RunKind[] = ["phases", "capture"];

describe.each([
  ["", true, "plain", KEYS, MIXED_KEYS],
  ["without groups, ", false, "plain", KEYS, MIXED_KEYS],
  ["in the partitioned layout, ", true, "partitioned", 10, 5],
] as const)("%s", (_, groups, layout, sameKeys, mixedKeys) => {
  beforeAll(async () => {
    url = await ordersDatabase();
    await changeLayout(fromPg(testPool(url)), layout);
    fleet = await startWorkers(PROCESSES, { url, poolSize: 4, groups });
  });

  afterAll(() => Promise.all(fleet.map((worker) => worker.kill())));

  describe.each(groups ? RUN_KINDS : CLAIMING)("a %s operation raced by 16 processes", (kind) => {
    it("runs once a key and gives all of them one answer, never a false mismatch", async () => {
      await inBatches(keys(`${kind}-same`, sameKeys), async (key) => {
        const answers = await race(kind, key, () => 5);
        expect(kinds(answers)).toEqual(["completed", "replayed"]);
        expect(answers.filter((answer) => answer.kind === "completed")).toHaveLength(1);
        expect(new Set(answers.map(({ answer }) => answer)).size).toBe(1);
        expect(await effects(url, key)).toHaveLength(1);
      });
    });

    it("never runs a second payload: whoever comes first is right, the others are told at once", async () => {
      await inBatches(keys(`${kind}-mixed`, mixedKeys), async (key, round) => {
        const odd = round % PROCESSES;
        const answers = await race(kind, key, (index) => (index === odd ? 6 : 5));
        const rows = await effects(url, key);
        expect(rows).toHaveLength(1);
        const oddWon = rows[0]?.amount === 6;
        const losers = answers.filter((_, index) => (index === odd) !== oddWon);
        const winners = answers.filter((_, index) => (index === odd) === oddWon);
        expect(kinds(losers)).toEqual(["mismatch"]);
        expect(winners.filter((answer) => answer.kind === "completed")).toHaveLength(1);
        expect(new Set(winners.map(({ answer }) => answer)).size).toBe(1);
      });
    });

    it("gives 50 concurrent requests that are spread over 3 processes one execution and one answer", async () => {
      const key = `${kind}-spread`;
      const answers = await Promise.all(
        Array.from({ length: 50 }, (_, index) => (fleet[index % 3] as Worker).run({ kind, key })),
      );
      expect(kinds(answers)).toEqual(["completed", "replayed"]);
      expect(answers.filter((answer) => answer.kind === "completed")).toHaveLength(1);
      expect(new Set(answers.map(({ answer }) => answer)).size).toBe(1);
      expect(await effects(url, key)).toHaveLength(1);
    });

    it("refuses another payload while the first still runs in another process, and leaves the first alone", async () => {
      const key = `${kind}-held`;
      const place = { transaction: "transaction", phases: "between", capture: "capture" }[kind];
      const running = first().run({ kind, key, holdAt: place });
      await first().held();
      expect(await second().run({ kind, key, amount: 6 })).toMatchObject({ kind: "mismatch" });
      expect(await third().run({ kind, key, waitMs: 50 })).toMatchObject({ kind: "busy" });
      first().go();
      expect(await running).toMatchObject({ kind: "completed" });
      expect(await second().run({ kind, key, amount: 6 })).toMatchObject({ kind: "mismatch" });
      expect(await third().run({ kind, key })).toEqual({
        ...(await running),
        kind: "replayed",
        id: expect.any(Number),
      });
      expect(await effects(url, key)).toMatchObject([{ amount: 5, pid: first().pid }]);
    });
  });

  it("leaves every entry finished, and the first attempt of each key its only one", async () => {
    for (const entry of await entries(url)) expect(entry).toMatchObject({ state: "succeeded", attempt: 1 });
  });
});
