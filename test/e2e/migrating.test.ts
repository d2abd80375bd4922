import { fromPg } from "oncekey/drivers/pg";
import { migrate } from "oncekey/postgres";
import pg from "pg";
import { beforeAll, describe, expect, it } from "vitest";
import { query } from "../support/postgres.ts";
import { type MigrationWorld, MONEY, migrationWorld, type Said, type Service } from "./support/migration-world.ts";

let world: MigrationWorld;
let olds: [Service, Service];
let news: [Service, Service];
/** What was answered under each key, for the days after. */
const answered = new Map<string, { readonly body: unknown; readonly said: Said }>();

const payment = (reference: string, amount_minor = 10) => ({ reference, amount_minor });
const core = ({ status, text, type }: Said) => ({ status, text, type });
const LONG_MS = 240_000;
const LOCKED = { status: 409, text: '{"error":"key_locked"}' };
const REUSED = { status: 400, text: '{"error":"key_reused"}' };

/** Asks every process, and gives the one answer that all of them must have. */
async function oneAnswer(key: string, body: unknown): Promise<Said> {
  const said = await Promise.all([...olds, ...news].map((service) => service.insist(key, body)));
  const [first] = said as [Said];
  expect(said.map(core)).toEqual(said.map(() => core(first)));
  answered.set(key, { body, said: first });
  return first;
}

/** One answer everywhere, and one payment: the one that the answer tells of. */
async function paidOnce(key: string, body: { readonly reference: string }): Promise<Said> {
  const said = await oneAnswer(key, body);
  expect(said.status).toBe(201);
  expect(await world.paid(body.reference)).toEqual([JSON.parse(said.text).id]);
  return said;
}

// Before anything is migrated: the old code alone, then Oncekey's tables beside its own, then new processes beside old ones.
beforeAll(async () => {
  world = await migrationWorld();
  olds = await Promise.all([world.service("old", "old-1"), world.service("old", "old-2")]);
  const before = await olds[0].insist("before-paid", payment("before-paid"));
  const refused = await olds[0].insist("before-refused", payment("before-refused", MONEY * 2));
  expect([before.status, refused.status]).toEqual([201, 402]);
  answered.set("before-paid", { body: payment("before-paid"), said: before });
  answered.set("before-refused", { body: payment("before-refused", MONEY * 2), said: refused });
  const pool = new pg.Pool({ connectionString: world.url });
  await migrate(fromPg(pool));
  await pool.end();
  news = await Promise.all([world.service("new", "new-1"), world.service("new", "new-2")]);
});

describe("keys that the old code finished before the migration began", () => {
  it.each(["before-paid", "before-refused"])("%s: the new code answers what the old code answered", async (key) => {
    const { body, said } = answered.get(key) as { body: { reference: string }; said: Said };
    expect(core(await news[0].ask(key, body))).toEqual(core(said));
    expect(await news[1].ask(key, body)).toEqual({ ...said, replayed: true });
    expect(await world.paid(body.reference)).toHaveLength(said.status === 201 ? 1 : 0);
  });

  it("refuses another body by the old hash, and keeps nothing of it", async () => {
    await olds[0].insist("hash", payment("hash"));
    expect(await news[0].ask("hash", payment("hash", 11))).toMatchObject(REUSED);
    // Equal by its meaning; but nobody can tell that from a hash of the bytes.
    expect(await news[0].ask("hash", '{ "reference": "hash", "amount_minor": 10 }')).toMatchObject(REUSED);
    await paidOnce("hash", payment("hash"));
  });
});

describe("a key that the new code finished", () => {
  it("is answered by the old code from the row that it finds", async () => {
    expect((await news[0].ask("new-first", payment("new-first"))).replayed).toBe(false);
    await paidOnce("new-first", payment("new-first"));
    expect(await olds[0].ask("new-first", payment("new-first", 11))).toMatchObject(REUSED);
    expect(await news[1].ask("new-first", payment("new-first", 11))).toMatchObject(REUSED);
  });

  it("stays refused in the old code where the new one refused, though there be money meanwhile", async () => {
    const dear = payment("dear", MONEY + 1);
    expect((await news[0].ask("dear", dear)).status).toBe(402);
    await query(world.url, `UPDATE accounts SET balance_minor = balance_minor + ${MONEY * 2}`);
    expect((await oneAnswer("dear", dear)).status).toBe(402);
    await query(world.url, `UPDATE accounts SET balance_minor = balance_minor - ${MONEY * 2}`);
    expect(await world.paid("dear")).toEqual([]);
  });

  it("is the old code's key also where the header has quotes, which the new code takes off", async () => {
    expect((await olds[0].ask('"quoted"', payment("quoted"))).status).toBe(201);
    await paidOnce('"quoted"', payment("quoted"));
  });
});

describe("a key that is at both at once", () => {
  it("while the old code works, the new code says 409, then gives its answer", async () => {
    const work = await world.holdWork();
    const first = olds[0].ask("old-works", payment("old-works"));
    await world.waiting("old-1");
    expect(await news[0].ask("old-works", payment("old-works"))).toMatchObject(LOCKED);
    expect(await news[0].ask("old-works", payment("old-works", 11))).toMatchObject(REUSED);
    await work.release();
    expect(core(await paidOnce("old-works", payment("old-works")))).toEqual(core(await first));
  });

  it("while the new code works, the old code waits for its transaction, then gives its answer", async () => {
    const work = await world.holdWork();
    const first = news[0].ask("new-works", payment("new-works"));
    await world.waiting("new-1");
    const second = olds[0].ask("new-works", payment("new-works"));
    await world.waiting("old-1");
    await work.release();
    expect(core(await second)).toEqual(core(await first));
    expect(core(await paidOnce("new-works", payment("new-works")))).toEqual(core(await first));
  });

  it("when the new process dies over it, the old code, which waited, does it", async () => {
    const work = await world.holdWork();
    const first = news[0].ask("new-dies", payment("new-dies")).catch(() => "lost");
    await world.waiting("new-1");
    const second = olds[0].ask("new-dies", payment("new-dies"));
    await world.waiting("old-1");
    await news[0].kill();
    expect(await first).toBe("lost");
    await work.release();
    await news[0].start();
    expect(core(await paidOnce("new-dies", payment("new-dies")))).toEqual(core(await second));
  });

  it("when the old process dies over it, it is locked for both, and taken over when the lock is old", async () => {
    const work = await world.holdWork();
    const first = olds[0].ask("old-dies", payment("old-dies")).catch(() => "lost");
    await world.waiting("old-1");
    await olds[0].kill();
    expect(await first).toBe("lost");
    await work.release();
    await world.gone("old-1");
    expect(await world.paid("old-dies")).toEqual([]);
    expect(await olds[1].ask("old-dies", payment("old-dies"))).toMatchObject(LOCKED);
    expect(await news[0].ask("old-dies", payment("old-dies"))).toMatchObject(LOCKED);
    await world.locksGrowOld();
    expect(await news[0].ask("old-dies", payment("old-dies"))).toMatchObject({ status: 201, replayed: false });
    await olds[0].start();
    await paidOnce("old-dies", payment("old-dies"));
  });

  it("an old process whose lock was taken over while it slept commits nothing", async () => {
    const work = await world.holdWork();
    const slow = olds[0].ask("old-sleeps", payment("old-sleeps"));
    await world.waiting("old-1");
    await world.locksGrowOld();
    const taken = news[0].insist("old-sleeps", payment("old-sleeps"));
    await world.waiting("new-1");
    await work.release();
    expect((await slow).status).toBeGreaterThanOrEqual(409);
    expect(core(await paidOnce("old-sleeps", payment("old-sleeps")))).toEqual(core(await taken));
  });
});

describe("a new process without the bridge", () => {
  it("pays again what the old code paid: these tests can see it", async () => {
    const unbridged = await world.service("new", "new-3", { BRIDGE: "off" });
    await olds[0].ask("unbridged", payment("unbridged"));
    await unbridged.ask("unbridged", payment("unbridged"));
    expect(await world.paid("unbridged")).toHaveLength(2);
    await unbridged.stop();
    await query(world.url, "DELETE FROM payments WHERE reference = 'unbridged'");
  });
});

describe("many keys at all processes at once", () => {
  it(
    "move the money once each, over a kill of either kind",
    async () => {
      const before = await world.balance();
      const keys = Array.from({ length: 24 }, (_, n) => ({
        key: `many-${n}`,
        body: payment(`many-${n}`, n % 6 === 5 ? MONEY * 2 : 1 + n),
      }));
      const work = await world.holdWork();
      const services = [...olds, ...news];
      // A quarter of the keys is begun by each process; once all of them work, every key comes to the others, too.
      const begun = keys.map(({ key, body }, n) => (services[n % 4] as Service).insist(key, body));
      await Promise.all(services.map(({ name }) => world.waiting(name, 2)));
      const racing = keys.map(({ key, body }, n) => {
        const others = services.filter((_, at) => at !== n % 4);
        return Promise.all([begun[n] as Promise<Said>, ...others.map((service) => service.insist(key, body))]);
      });
      await Promise.all([olds[0].kill(), news[0].kill()]);
      await Promise.all([world.gone("old-1"), work.release()]);
      await Promise.all([olds[0].start(), news[0].start(), world.locksGrowOld()]);
      const answers = await Promise.all(racing);
      for (const [n, { key, body }] of keys.entries()) {
        const said = await (body.amount_minor < MONEY ? paidOnce(key, body) : oneAnswer(key, body));
        expect(answers[n]?.map(core)).toEqual(answers[n]?.map(() => core(said)));
      }
      const spent = keys
        .filter(({ body }) => body.amount_minor < MONEY)
        .reduce((sum, { body }) => sum + body.amount_minor, 0);
      expect(await world.balance()).toBe(before - spent);
      expect(await query(world.url, "SELECT reference FROM payments GROUP BY 1 HAVING count(*) > 1")).toEqual([]);
    },
    LONG_MS,
  );
});

describe("afterwards", () => {
  const replays = async (service: Service) => {
    expect(answered.size).toBeGreaterThan(30);
    for (const [key, { body, said }] of answered) {
      expect(await service.ask(key, body), key).toEqual({ ...said, replayed: true });
    }
  };

  it("back: the old code alone answers every key as it was answered", async () => {
    await Promise.all(news.map((service) => service.stop()));
    for (const [key, { body, said }] of answered) expect(core(await olds[1].ask(key, body)), key).toEqual(core(said));
  });

  it("on: without old processes the bridge goes, and every key is replayed", async () => {
    await Promise.all(olds.map((service) => service.stop()));
    await news[0].start();
    await news[1].start({ BRIDGE: "off" });
    await replays(news[1]);
    // Rolling here too: one process still has the bridge.
    const [said, again] = await Promise.all(news.map((service) => service.insist("rolling", payment("rolling"))));
    expect(core(said as Said)).toEqual(core(again as Said));
    expect(await world.paid("rolling")).toHaveLength(1);
    answered.set("rolling", { body: payment("rolling"), said: said as Said });
  });

  it("the table is dropped, and every key is replayed", async () => {
    await news[0].stop();
    await news[0].start({ BRIDGE: "off", DIALECT: "ietf" });
    await query(world.url, "DROP TABLE idempotency_keys");
    await replays(news[0]);
    await replays(news[1]);
    expect((await news[0].ask("fresh", payment("fresh"))).status).toBe(201);
    expect(await world.paid("fresh")).toHaveLength(1);
  });

  it("clients see the new dialect, or the old one where it is kept", async () => {
    const spaced = '{ "amount_minor": 10.0, "reference": "fresh" }';
    expect(await news[1].ask("fresh", spaced)).toMatchObject({ status: 201, replayed: true });
    expect(await news[1].ask("fresh", payment("fresh", 11))).toMatchObject(REUSED);
    const problem = await news[0].ask("fresh", payment("fresh", 11));
    expect([problem.status, problem.type]).toEqual([422, "application/problem+json"]);
    expect(JSON.parse(problem.text)).toMatchObject({ code: "idempotency_payload_mismatch" });
    expect(await world.paid("fresh")).toHaveLength(1);
  });
});
