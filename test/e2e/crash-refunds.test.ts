import { crashPoints } from "oncekey/testing";
import { beforeAll, describe, expect, it } from "vitest";
import { cuttingProxy } from "../support/cutting-proxy.ts";
import { atEnd } from "../support/postgres.ts";
import { post, type RawAnswer } from "./support/client.ts";
import { type Lab, openLab, type Program } from "./support/crash-lab.ts";
import {
  chargeOf,
  crashOne,
  rowsOf,
  type Submission,
  submit,
  submitUntilCrash,
  submitUntilFinal,
  tracesOf,
} from "./support/crash-requests.ts";
import { eventually } from "./support/example.ts";

// A captured handler's effect and its stored answer are two commits. Killed in between, nobody knows: the key says so,
// and no second refund is ever made.

// A refund may run for 3 seconds here (half of the retention); after that and one more lease nothing of a killed attempt can be running.
const SHORT = { ONCEKEY_RETENTION_MS: "6000", ONCEKEY_LEASE_MS: "1000" };

let lab: Lab;
let survivor: Program;
let chargeId: string;

beforeAll(async () => {
  lab = await openLab();
  survivor = await lab.api(SHORT);
  chargeId = (await post(`${survivor.url}/v1/charges`, "charge", chargeOf("charge").body)).json().id;
});

const refundOf = (key: string): Submission => ({
  path: "/v1/refunds",
  key,
  body: { charge_id: chargeId, amount_minor: 1 },
});

const around = (name: string): string[] => [`${name}:before`, `${name}:after`];
const POINTS = [...crashPoints({ runKind: "capture" }), ...around("refund_insert"), ...around("refund_commit")];
const WITHOUT_CLAIM = ["read:before", "read:after", "claim:before"];
const COMPLETED = ["complete:after"];
const OPEN = POINTS.filter((point) => ![...WITHOUT_CLAIM, ...COMPLETED].includes(point));

function expectUnknown(answer: RawAnswer): void {
  expect(answer.status).toBe(409);
  expect(answer.headers["content-type"]).toMatch(/^application\/problem\+json/);
  expect(Number(answer.headers["retry-after"])).toBeGreaterThanOrEqual(1);
  expect(answer.json()).toMatchObject({
    code: "idempotency_outcome_unknown",
    retry: "same_key",
    state: "needs_recovery",
  });
}

/** Asks until the answer is no longer that the first request is running (a killed process's lease has to lapse). */
async function untilJudged(api: Program, refund: Submission): Promise<RawAnswer> {
  for (let tried = 1; ; tried++) {
    const answer = await submit(api, refund);
    if (tried > 20 || answer.json().code !== "idempotency_in_progress") return answer;
  }
}

async function crashAt(point: string, env: Readonly<Record<string, string>>): Promise<Submission> {
  return crashOne(await lab.api(env), (tried) => refundOf(`refund-${point}-${tried}`), point);
}

async function expectMadeOnce(refund: Submission): Promise<RawAnswer> {
  const answer = await submitUntilFinal(survivor, refund);
  expect(answer.status).toBe(201);
  expect(answer.json()).toMatchObject({ charge_id: chargeId, amount_minor: 1 });
  expect(await rowsOf(lab, "refunds", refund.key)).toBe(1);
  const [row] = await lab.sql<{ id: string }>("SELECT id FROM refunds WHERE idempotency_key = $1", [refund.key]);
  expect(answer.json().id).toBe(row?.id);
  return answer;
}

describe.concurrent("a refund whose process is killed", () => {
  for (const point of WITHOUT_CLAIM) {
    it(`at ${point} is made by the retry`, async () => {
      const answer = await expectMadeOnce(await crashAt(point, SHORT));
      expect(answer.headers["idempotent-replayed"]).toBeUndefined();
    });
  }

  for (const point of OPEN) {
    it(`at ${point} is unknown, then reconciled, and made once`, async () => {
      const refund = await crashAt(point, SHORT);
      const made = await rowsOf(lab, "refunds", refund.key);
      expectUnknown(await untilJudged(survivor, refund));
      expect((await tracesOf(lab, refund)).entries).toMatchObject([{ state: "needs_recovery", reason: "owner_lost" }]);
      expect(await rowsOf(lab, "refunds", refund.key)).toBe(made);
      const answer = await expectMadeOnce(refund);
      // Where the refund had been made, the reconciled answer is a replay of it; else the retry made it itself.
      expect(answer.headers["idempotent-replayed"]).toBe(made === 1 ? "true" : undefined);
    });
  }

  it("after its answer was stored is replayed", async () => {
    const answer = await expectMadeOnce(await crashAt("complete:after", SHORT));
    expect(answer.headers["idempotent-replayed"]).toBe("true");
  });

  it("stays unknown while an attempt of it could still be running, and is not made again", async () => {
    const refund = refundOf("refund-unknown");
    const env = { ONCEKEY_LEASE_MS: "1000" };
    const [victim, other] = await Promise.all([lab.api(env), lab.api(env)]);
    await submitUntilCrash(victim, refund, "refund_commit:after");
    expectUnknown(await untilJudged(other, refund));
    const again = await Promise.all(Array.from({ length: 5 }, () => submit(other, refund)));
    for (const answer of again) expectUnknown(answer);
    expect(await rowsOf(lab, "refunds", refund.key)).toBe(1);
  });
});

describe("a refund whose handler throws", () => {
  it("after its effect is not made again: the retry learns what was made", async () => {
    const refund = refundOf("refund-threw-after");
    const { proxy, api } = await throughProxy();
    const answering = submit(api, refund, { headers: { "x-lab-delay-ms": "1500" } });
    await claimed(refund);
    proxy.loseNextCommitAnswer();
    const thrown = await answering;
    expect(thrown.status).toBe(500);
    expect((await tracesOf(lab, refund)).entries).toMatchObject([
      { state: "needs_recovery", reason: "handler_failed" },
    ]);
    expect(await rowsOf(lab, "refunds", refund.key)).toBe(1);
    const answer = await expectMadeOnce(refund);
    expect(answer.headers["idempotent-replayed"]).toBe("true");
  });

  it("before its effect is made by the retry", async () => {
    const refund = refundOf("refund-threw-before");
    // Its own times say when "not done" may be believed of what it ran, whoever asks.
    const api = await lab.api(SHORT);
    const answering = submit(api, refund, { headers: { "x-lab-delay-ms": "1500" } });
    await claimed(refund);
    await eventually("the handler's transaction is cut", 10_000, async () => {
      const cut = `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
        WHERE datname = current_database() AND state = 'idle in transaction'`;
      return (await lab.sql(cut)).length > 0;
    });
    expect((await answering).status).toBe(500);
    expect(await rowsOf(lab, "refunds", refund.key)).toBe(0);
    await expectMadeOnce(refund);
    expect((await submit(api, refund)).status).toBe(201);
  });
});

async function throughProxy() {
  const url = new URL(lab.databaseUrl);
  const proxy = await cuttingProxy(Number(url.port));
  atEnd(() => proxy.close());
  url.port = String(proxy.port);
  return { proxy, api: await lab.api({ DATABASE_URL: url.href }) };
}

function claimed({ key }: Submission): Promise<void> {
  const sql = "SELECT FROM oncekey.entry WHERE key = $1 AND state = 'in_progress'";
  return eventually("the refund is claimed", 10_000, async () => (await lab.sql(sql, [key])).length > 0);
}
