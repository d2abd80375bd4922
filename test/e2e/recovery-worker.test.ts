import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { crashPoints } from "oncekey/testing";
import { beforeEach, describe, expect, it } from "vitest";
import { passTime } from "../support/postgres.ts";
import { behave, list, post } from "./support/client.ts";
import { type Lab, openLab, type Program, startPsp } from "./support/crash-lab.ts";
import { effectsAtProvider } from "./support/crash-provider.ts";
import { chargeOf, rowsOf, submit, submitUntilCrash, submitUntilFinal, tracesOf } from "./support/crash-requests.ts";
import { eventually, makeDataDir } from "./support/example.ts";

// Charges whose API is killed and whose client never comes back: `oncekey worker` finishes them, alone. And the commands
// for what it cannot finish.

const around = (name: string): string[] => [`${name}:before`, `${name}:after`];

/** Every point of a charge, as the crash lab names them. */
const POINTS = [
  ...crashPoints({
    runKind: "phases",
    steps: [{ phase: "charge_created" }, { call: "authorize", intent: false }, { call: "capture", intent: false }],
  }),
  ...around("charge_insert"),
  ...around("charge_settle"),
  ...around("send:charge.settled"),
];

/** Until then nothing has been promised to anybody. */
const BEFORE_CLAIM = ["read:before", "read:after", "claim:before"];

const LEASE = { ONCEKEY_LEASE_MS: "3000" };
type Charge = ReturnType<typeof chargeOf>;

let lab: Lab;

// A lab for each: a worker that one test left behind must not take up another one's charges.
beforeEach(async () => {
  lab = await openLab({ env: LEASE });
});

async function expectSettled(charge: Charge, psp: Program = lab.psp): Promise<void> {
  expect(await rowsOf(lab, "charges", charge.key)).toBe(1);
  expect(await effectsAtProvider(psp, charge.amount)).toEqual({ authorizations: 1, captures: 1 });
  expect(await tracesOf(lab, charge)).toMatchObject({ entries: [{ state: "succeeded" }], messages: 1 });
  const rows = await lab.sql("SELECT status FROM charges WHERE idempotency_key = $1", [charge.key]);
  expect(rows).toEqual([{ status: "succeeded" }]);
}

const stateOf = async (charge: Charge) => (await tracesOf(lab, charge)).entries[0]?.state ?? "none";

const becomes = (charge: Charge, state: string) =>
  eventually(`${charge.key} is ${state}`, 30_000, async () => (await stateOf(charge)) === state);

/** What `oncekey` prints with --json. */
async function asked(...args: string[]) {
  const { code, output } = await lab.command([...args, "--json"]);
  return { code, data: JSON.parse(output) };
}

describe("charges whose API was killed and whose client never returned", () => {
  it("at any crash point are finished by the worker alone, and replayed to a client that comes very late", async () => {
    const worker = await lab.worker();
    const charges = POINTS.map((point) => ({ point, charge: chargeOf(`alone-${point}`) }));
    let heir = lab.api();
    for (const { point, charge } of charges) {
      const api = await heir;
      heir = lab.api();
      await submitUntilCrash(api, charge, point);
    }
    const late = await heir;
    for (const { point, charge } of charges) {
      if (BEFORE_CLAIM.includes(point)) {
        expect(await tracesOf(lab, charge)).toEqual({ entries: [], messages: 0 });
        expect(await effectsAtProvider(lab.psp, charge.amount)).toEqual({ authorizations: 0, captures: 0 });
        continue;
      }
      await becomes(charge, "succeeded");
      await expectSettled(charge);
      const replay = await submit(late, charge);
      expect(replay.status).toBe(201);
      expect(replay.headers["idempotent-replayed"]).toBe("true");
      expect(replay.json()).toMatchObject({ status: "succeeded", amount_minor: charge.amount });
    }
    worker.signal("SIGTERM");
    expect(await worker.ended).toBe("0");
    late.signal("SIGKILL");
  }, 180_000);
});

describe("charges whose provider is down the whole time", () => {
  it("need recovery, are listed, and are settled by find after it is back: by the worker, and by a retry", async () => {
    const psp = await startPsp(makeDataDir());
    // Without dedupe a second call would be a second payment: only the look-up may settle them.
    await behave(psp.url, { dedupe: false });
    const env = { PSP_URL: psp.url, ONCEKEY_PSP_RECOVER: "find_cancel" };
    const [victim, survivor] = await Promise.all([lab.api(env), lab.api(env)]);
    const [abandoned, retried] = [chargeOf("down-abandoned"), chargeOf("down-retried")];
    // One payment was made and nobody heard of it; the other was never made, and nobody can be asked.
    await submitUntilCrash(victim, abandoned, "call:authorize:after");
    await behave(psp.url, { down: true });
    expect((await submit(survivor, retried)).json().code).toBe("idempotency_outcome_unknown");
    const worker = await lab.worker(env);
    await eventually("both are given up", 60_000, async () => {
      // Their pauses are over at once: what is left is as many attempts as the operation allows.
      await lab.sql(
        "UPDATE oncekey.entry SET lease_until = clock_timestamp(), not_before = NULL WHERE state = 'in_progress' AND not_before > clock_timestamp()",
      );
      const states = await Promise.all([abandoned, retried].map(stateOf));
      return states.every((state) => state === "needs_recovery");
    });

    const { data } = await asked("status");
    const group = data.recovery.find(({ operation }: { operation: string }) => operation === "charges.create");
    expect(group).toMatchObject({ count: 2, reason: expect.stringMatching(/^gave_up/), sweepInMs: expect.any(Number) });
    expect(group.ids).toHaveLength(2);
    worker.signal("SIGKILL");
    await worker.ended;

    await behave(psp.url, { down: false });
    const answer = await submitUntilFinal(survivor, retried);
    expect(answer.status).toBe(201);
    await expectSettled(retried, psp);
    // Its pause has grown meanwhile; time passes for the entry alone.
    await lab.sql("UPDATE oncekey.entry SET sweep_at = clock_timestamp() WHERE key = $1", [abandoned.key]);
    await lab.worker(env);
    await becomes(abandoned, "succeeded");
    await expectSettled(abandoned, psp);
    for (const program of [survivor, psp]) program.signal("SIGKILL");
  }, 180_000);
});

describe("a charge that must never be repeated", () => {
  it("waits for an operator, who is refused until it is settled and then decides once and for all", async () => {
    const psp = await startPsp(makeDataDir());
    const env = { PSP_URL: psp.url, ONCEKEY_PSP_RECOVER: "at_most_once" };
    const api = await lab.api(env);
    const charge = chargeOf("never-again");
    await behave(psp.url, { drop_next: 1 });
    await submit(api, charge);
    await becomes(charge, "needs_recovery");
    const { data: inspected } = await asked("inspect", charge.key);
    const [{ id, attempt, recorded }] = inspected.entries;
    expect(recorded.intents).toMatchObject([{ call: "authorize", state: "open", form: "never" }]);

    const answer = '{"status":402,"body":{"code":"payment_unclear","amount_minor":12345678901234567890}}';
    const file = join(lab.dir, "answer.json");
    writeFileSync(file, answer);
    const early = await asked("resolve", id, "--failed", file, "--attempt", String(attempt));
    expect(early).toMatchObject({ code: "4", data: { resolved: false, why: "unsettled" } });
    await passTime(lab.databaseUrl, 20_000);
    const decided = await asked(
      "resolve",
      id,
      "--failed",
      file,
      "--attempt",
      String(attempt),
      "--by",
      "ada",
      "--note",
      "ticket 4711",
    );
    expect(decided).toMatchObject({ code: "0", data: { resolved: true, verdict: "failed", from: "needs_recovery" } });

    const retry = await submit(api, charge);
    expect(retry.status).toBe(402);
    expect(retry.headers["idempotent-replayed"]).toBe("true");
    expect(retry.text).toBe('{"code":"payment_unclear","amount_minor":12345678901234567890}');
    expect(await list(`${psp.url}/authorizations`)).toHaveLength(1);
    const { data: after } = await asked("inspect", charge.key);
    expect(after.entries[0]).toMatchObject({
      state: "failed",
      resolutions: [
        { verdict: "failed", by: "ada", note: "ticket 4711", forced: false, stateBefore: "needs_recovery" },
      ],
    });
    for (const program of [api, psp]) program.signal("SIGKILL");
  });
});

describe("two tenants with an account each at the provider", () => {
  it("are charged on their own account, also where the worker resumes", async () => {
    const api = await lab.api();
    const tokens = { acme: "sk_test_acme", globex: "sk_test_globex" };
    const body = (amount: number) => ({ amount_minor: amount, currency: "EUR", source: "tok_visa" });
    await post(`${api.url}/v1/charges`, "tenant", body(71), { token: tokens.acme });
    const headers = { "x-lab-crash": "record_call:authorize:before" };
    await post(`${api.url}/v1/charges`, "tenant", body(72), { token: tokens.globex, headers }).catch(() => undefined);
    await api.ended;
    const worker = await lab.worker();
    const accounts = async (kind: string, amount: number) =>
      (await list(`${lab.psp.url}/${kind}`)).filter((one) => one.amount_minor === amount).map(({ account }) => account);
    await eventually("the worker captures it", 30_000, async () => (await accounts("captures", 72)).length > 0);
    for (const kind of ["authorizations", "captures"]) {
      expect(await accounts(kind, 71)).toEqual(["acct_acme"]);
      expect(await accounts(kind, 72)).toEqual(["acct_globex"]);
    }
    const [{ context } = { context: null }] = await lab.sql<{ context: Buffer | null }>(
      "SELECT context FROM oncekey.entry WHERE tenant = 'globex' AND key = 'tenant'",
    );
    expect(String(context)).toContain("acct_globex");
    expect(String(context)).not.toContain("psp_test_globex");
    worker.signal("SIGKILL");
  });
});
