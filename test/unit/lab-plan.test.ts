import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { amountIn } from "../../lab/crash/checks/view.ts";
import { deploysOf } from "../../lab/crash/deploy.ts";
import { planOf } from "../../lab/crash/driver.ts";
import { FAULTS } from "../../lab/crash/faults.ts";
import { orderBook } from "../../lab/crash/orders.ts";
import { readOptions } from "../../lab/crash/terms.ts";
import { randomOf } from "../../lab/support/random.ts";
import { repositoryRoot } from "../../scripts/check.ts";

const wires = FAULTS.filter(({ lane }) => lane === "wires");

function firstOf(seed: number, count: number): string[] {
  const plan = planOf(wires, seed, "wires");
  return Array.from({ length: count }, () => (plan.next().value as { kind: { name: string } }).kind.name);
}

describe("the plan of a seed", () => {
  it("is the same for the same seed, and another for another", () => {
    expect(firstOf(7, 60)).toEqual(firstOf(7, 60));
    expect(firstOf(7, 60)).not.toEqual(firstOf(8, 60));
  });

  it("has every kind once in each round, in another order", () => {
    const [first, second] = [firstOf(7, wires.length), firstOf(7, 2 * wires.length).slice(wires.length)];
    expect(new Set(first)).toEqual(new Set(wires.map(({ name }) => name)));
    expect(new Set(second)).toEqual(new Set(first));
    expect(second).not.toEqual(first);
  });

  it("names every kind of fault once", () => {
    expect(new Set(FAULTS.map(({ name }) => name)).size).toBe(FAULTS.length);
  });
});

describe("docs/lab.md", () => {
  it("names every kind of fault, and no other", () => {
    const page = readFileSync(join(repositoryRoot, "docs", "lab.md"), "utf8");
    const table = page.slice(page.indexOf("| fault | what is done |"), page.indexOf("Then the faults end"));
    const cells = table.split("\n").map((row) => row.split("|")[1] ?? "");
    const named = cells.flatMap((cell) => [...cell.matchAll(/`(\w+)`/g)].map(([, name]) => name));
    expect(named.sort()).toEqual(FAULTS.map(({ name }) => name).sort());
  });
});

describe("the numbers of a seed", () => {
  it("are even enough to choose by, and stay within their bounds", () => {
    const random = randomOf(1, "test");
    const counts = [0, 0, 0, 0];
    for (let draw = 0; draw < 4_000; draw++) {
      const one = random.between(0, 3);
      counts[one] = (counts[one] ?? 0) + 1;
    }
    for (const count of counts) expect(count).toBeGreaterThan(850);
    expect(() => random.pick([])).toThrow();
  });
});

describe("the orders of a life", () => {
  it("have keys and amounts of their own, over all lives, and payloads that differ", () => {
    const books = [1, 2].map((life) => orderBook(randomOf(3, "orders", life), life));
    const orders = books.flatMap((book) => Array.from({ length: 200 }, () => book.next()));
    expect(new Set(orders.map(({ key }) => key)).size).toBe(400);
    const amounts = orders.flatMap(({ payload, changed, rival }) => [payload, changed, rival].map(amountIn));
    expect(new Set(amounts).size).toBe(3 * 400);
  });

  it("refund only charges of the same tenant that were answered", () => {
    const book = orderBook(randomOf(3, "orders", 1), 1);
    expect(Array.from({ length: 50 }, () => book.next().what)).not.toContain("refund");
    book.charged({ caller: { tenant: "globex", client: "app" } }, "ch_1");
    const refunds = Array.from({ length: 200 }, () => book.next()).filter(({ what }) => what === "refund");
    expect(new Set(refunds.map(({ caller }) => caller.tenant))).toEqual(new Set(["globex"]));
  });
});

describe("deploys", () => {
  it("know the next key before it seals, and the last one as long as it may be needed", () => {
    const deploy = deploysOf(1);
    const ids = () =>
      deploy
        .env()
        .ONCEKEY_ENCRYPTION_KEYS?.split(",")
        .map((one) => Number(one.split(":")[0]));
    expect(ids()).toEqual([1, 2]);
    deploy.rotateKeys();
    expect(ids()).toEqual([2, 3, 1]);
    for (const key of deploy.env().ONCEKEY_ENCRYPTION_KEYS?.split(",") ?? []) {
      expect(deploy.secrets()).toContain(key.slice(2));
    }
  });
});

describe("the command line", () => {
  it("takes minutes, seed and form, and chooses the form by the seed", () => {
    expect(readOptions(["--minutes", "1.2", "--seed", "4"])).toMatchObject({
      minutes: 1.2,
      seed: 4,
      recover: "dedupes",
    });
    expect(readOptions(["--seed", "5"])).toMatchObject({ minutes: 10, recover: "find_cancel" });
  });

  it("refuses what makes no sense", () => {
    for (const args of [["--minutes", "0"], ["--seed", "x"], ["--recover", "at_most_once"], ["--other"]]) {
      expect(() => readOptions(args)).toThrow();
    }
  });
});
