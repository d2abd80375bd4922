import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { CANARIES, checkCanaries } from "../../lab/crash/canaries.ts";
import { checkOf, invariantsOf } from "../../lab/crash/checks/index.ts";
import type { EffectRow, Evidence } from "../../lab/crash/evidence.ts";
import { type Answer, type Exchange, openHistory, readHistories } from "../../lab/crash/history.ts";
import { meaningOf } from "../../lab/crash/meaning.ts";

const dir = mkdtempSync(join(tmpdir(), "oncekey-lab-test-"));
afterAll(() => rmSync(dir, { recursive: true, force: true }));

const caller = { tenant: "acme", client: "app" };
const keyOf = (n: number) => `lk-00000000-0000-4000-8000-00000000000${n}`;

function answer(status: number, body: object, more: Partial<Answer> = {}): Answer {
  const headers = { location: null, contentType: "application/json", retryAfter: null, replayed: false };
  return { status, body: JSON.stringify(body), ...headers, ...more };
}

let n = 0;

function exchange(what: Exchange["what"], key: string, payload: object, more: Partial<Exchange>): Exchange {
  n++;
  const base = { ...caller, what, key, payload: JSON.stringify(payload), role: "honest", answer: null } as const;
  return { ...base, n: `t:${n}`, sentAt: n, ...more };
}

function effect(
  what: EffectRow["what"],
  id: string,
  key: string,
  amount: string,
  more: Partial<EffectRow> = {},
): EffectRow {
  const base = { chargeId: null, status: "draft", authorization: null, capture: null };
  return { ...caller, ...base, what, id, key, amount, ...more };
}

const mismatch = answer(422, { code: "idempotency_payload_mismatch" });
const comeBack = answer(409, { code: "idempotency_in_progress" }, { retryAfter: "1" });
const invoice = answer(201, { id: "inv_1", status: "draft" });
const charge = answer(201, { id: "ch_1", status: "succeeded", psp_authorization: "auth_1", psp_capture: "cap_1" });
const refund = answer(201, { id: "re_1", status: "succeeded" });

/** A campaign of a few requests in which everything held. */
function healthy(): Evidence {
  const charged = { status: "succeeded", authorization: "auth_1", capture: "cap_1" };
  const declined = { status: "declined", authorization: "auth_2" };
  return {
    exchanges: [
      exchange("invoice", keyOf(1), { amount_minor: 10 }, {}),
      exchange("invoice", keyOf(1), { amount_minor: 10 }, { answer: comeBack }),
      exchange("invoice", keyOf(1), { amount_minor: 10 }, { answer: invoice }),
      exchange("invoice", keyOf(1), { amount_minor: 10 }, { answer: { ...invoice, replayed: true } }),
      exchange("invoice", keyOf(1), { amount_minor: 11 }, { role: "changed", answer: mismatch }),
      exchange("charge", keyOf(2), { amount_minor: 20 }, { answer: charge }),
      exchange("charge", keyOf(3), { amount_minor: 30 }, { answer: answer(402, { code: "card_declined" }) }),
      exchange("refund", keyOf(4), { amount_minor: 5, charge_id: "ch_1" }, { answer: refund }),
    ],
    verdicts: [{ ...caller, what: "charge", key: keyOf(2), verdict: "succeeded" }],
    effects: [
      effect("invoice", "inv_1", keyOf(1), "10"),
      effect("charge", "ch_1", keyOf(2), "20", charged),
      effect("charge", "ch_2", keyOf(3), "30", declined),
      effect("refund", "re_1", keyOf(4), "5", { chargeId: "ch_1", status: "succeeded" }),
    ],
    entries: [],
    deleted: [{ id: "01", state: "succeeded", attempt: 2, recorded: true, expired: true }],
    late: [],
    messages: [
      { id: "m1", topic: "invoice.created", state: "delivered" },
      { id: "m2", topic: "charge.settled", state: "delivered" },
    ],
    deliveries: [
      { id: "m1", topic: "invoice.created", about: "inv_1" },
      { id: "m2", topic: "charge.settled", about: "ch_1" },
      { id: "m2", topic: "charge.settled", about: "ch_1" },
    ],
    payments: [
      { kind: "authorizations", id: "auth_1", status: "authorized", amount: "20", authorization: null },
      { kind: "captures", id: "cap_1", status: "captured", amount: "20", authorization: "auth_1" },
      { kind: "authorizations", id: "auth_2", status: "declined", amount: "30", authorization: null },
    ],
    logs: { "api-1": "oncekey payments ready" },
    secrets: ["sk_test_acme"],
    fallen: [],
    faults: [{ name: "kill_api", runs: 1, metRuns: 1, missing: null }],
    broken: [],
  };
}

describe("the checks of the crash campaign", () => {
  it("pass where everything held", () => {
    const failed = invariantsOf(healthy())
      .map(checkOf)
      .filter(({ passed }) => !passed);
    expect(failed).toEqual([]);
  });

  it("find every planted violation", () => {
    expect(checkCanaries(healthy())).toMatchObject({ passed: true, found: `${CANARIES.length} of ${CANARIES.length}` });
  });

  it("have a planted violation each, but for what the lab says of itself", () => {
    const names = invariantsOf(healthy()).map(({ name }) => name);
    const untried = names.filter((name) => !CANARIES.some(({ foundBy }) => name.includes(foundBy)));
    expect(untried).toEqual([
      "no fault broke by itself",
      "the fleet has met all that it should (else it shows nothing)",
    ]);
  });

  it("fail where nothing was looked at", () => {
    expect(checkOf({ name: "nothing", looked: 0, wrong: [] }).passed).toBe(false);
  });

  it("leave out a key that came back after its retention, and nothing else", () => {
    const evidence = healthy();
    const again = effect("invoice", "inv_9", keyOf(1), "11");
    const other = exchange("invoice", keyOf(1), { amount_minor: 11 }, { answer: answer(201, { id: "inv_9" }) });
    const twice = { exchanges: [...evidence.exchanges, other], effects: [...evidence.effects, again] };
    const wrongOf = (one: Evidence) => invariantsOf(one).filter(({ wrong }) => wrong.length > 0);
    expect(wrongOf({ ...evidence, ...twice })).not.toEqual([]);
    const one = { ...caller, what: "invoice", key: keyOf(1) } as const;
    const named = ["at most one invoice", "one ran at most", "equal, byte for byte"];
    const wrong = wrongOf({ ...evidence, ...twice, late: [one] }).map(({ name }) => name);
    expect(wrong.filter((name) => named.some((part) => name.includes(part)))).toEqual([]);
    const stranger = { ...one, tenant: "globex" };
    expect(wrongOf({ ...evidence, ...twice, late: [stranger] }).map(({ name }) => name)).toContain(
      "at most one invoice for each tenant, client and key",
    );
  });

  it("let rivals race, whoever wins", () => {
    const evidence = healthy();
    const payloads = [{ amount_minor: 70 }, { amount_minor: 72 }] as const;
    const race = [
      exchange("invoice", keyOf(7), payloads[0], { answer: mismatch }),
      exchange("invoice", keyOf(7), payloads[1], {
        role: "rival",
        answer: answer(201, { id: "inv_7", status: "draft" }),
      }),
    ];
    const made = effect("invoice", "inv_7", keyOf(7), "72");
    const delivered = { id: "m7", topic: "invoice.created", about: "inv_7" };
    const raced: Evidence = {
      ...evidence,
      exchanges: [...evidence.exchanges, ...race],
      effects: [...evidence.effects, made],
      messages: [...evidence.messages, { id: "m7", topic: "invoice.created", state: "delivered" }],
      deliveries: [...evidence.deliveries, delivered],
    };
    expect(invariantsOf(raced).filter(({ wrong }) => wrong.length > 0)).toEqual([]);
    const both = { ...raced, effects: [...raced.effects, effect("invoice", "inv_8", keyOf(7), "70")] };
    const found = invariantsOf(both).filter(({ wrong }) => wrong.length > 0);
    expect(found.map(({ name }) => name)).toContain("of the payloads that came under one key, one ran at most");
  });
});

describe("a history", () => {
  it("keeps what was sent before the answer, and leaves out a line that a kill has cut short", () => {
    const path = join(dir, "history-1.jsonl");
    const history = openHistory(path, "life-1");
    const sent = { ...caller, what: "charge", key: "k", payload: "{}", role: "honest" } as const;
    const [first, second] = [history.sent(sent), history.sent(sent)];
    history.answered(second, charge);
    history.told({ ...caller, what: "charge", key: "k", verdict: "succeeded" });
    history.close();
    writeFileSync(path, '{"n":"life-1:', { flag: "a" });
    const { exchanges, verdicts } = readHistories([path, join(dir, "missing.jsonl")]);
    expect(exchanges.map((one) => [one.n, one.answer?.status ?? null])).toEqual([
      [first, null],
      [second, 201],
    ]);
    expect(verdicts).toHaveLength(1);
  });
});

describe("the meaning of an answer", () => {
  it.each([
    [invoice, "done"],
    [answer(402, { code: "card_declined" }), "refused"],
    [mismatch, "mismatch"],
    [comeBack, "come_back"],
    [answer(503, { code: "idempotency_store_unavailable" }, { retryAfter: "1" }), "come_back"],
    [answer(503, { code: "idempotency_store_unavailable" }), "strange"],
    [answer(500, { code: "internal_error" }), "come_back"],
    [answer(409, { code: "idempotency_response_unavailable" }), "strange"],
    [answer(401, { code: "unauthenticated" }), "strange"],
    [answer(200, {}), "strange"],
    [{ ...invoice, body: "<html>" }, "strange"],
  ] as const)("%j is %s", (given, meaning) => expect(meaningOf(given)).toBe(meaning));
});
