import { crashPoints } from "oncekey/testing";
import { beforeAll, describe, expect, it } from "vitest";
import { list, type RawAnswer } from "./support/client.ts";
import { type Lab, openLab, type Program } from "./support/crash-lab.ts";
import { effectsAtProvider } from "./support/crash-provider.ts";
import {
  chargeOf,
  crashOne,
  invoiceOf,
  rowsOf,
  type Submission,
  submit,
  submitUntilFinal,
  tracesOf,
} from "./support/crash-requests.ts";

const around = (name: string): string[] => [`${name}:before`, `${name}:after`];

const INVOICE_POINTS = [
  ...crashPoints({ runKind: "transaction" }),
  ...around("invoice_insert"),
  ...around("send:invoice.created"),
];

const CHARGE_POINTS = [
  ...crashPoints({
    runKind: "phases",
    steps: [{ phase: "charge_created" }, { call: "authorize", intent: false }, { call: "capture", intent: false }],
  }),
  ...around("charge_insert"),
  ...around("charge_settle"),
  ...around("send:charge.settled"),
];

const REFUND_POINTS = [...crashPoints({ runKind: "capture" }), ...around("refund_insert"), ...around("refund_commit")];

let lab: Lab;
let living: Program;
/** Starts while its predecessor is being killed. */
let heir: Promise<Program>;

beforeAll(async () => {
  lab = await openLab({ env: { ONCEKEY_LEASE_MS: "1000" } });
  living = await lab.api();
  heir = startHeir();
});

function startHeir(): Promise<Program> {
  const starting = lab.api();
  starting.catch(() => undefined);
  return starting;
}

/** Kills the living API at that point, then asks its successor until the answer is final. */
async function crashAndRetry<S extends Submission>(make: (name: string) => S, point: string) {
  const submission = await crashOne(living, (tried) => make(`${point}-${tried}`), point);
  living = await heir;
  heir = startHeir();
  return { submission, answer: await submitUntilFinal(living, submission) };
}

async function expectReplay(first: RawAnswer, submission: Submission): Promise<void> {
  const replay = await submit(living, submission);
  expect(replay.headers["idempotent-replayed"]).toBe("true");
  expect(replay.status).toBe(first.status);
  expect(replay.headers.location).toBe(first.headers.location);
  expect(replay.bytes.equals(first.bytes)).toBe(true);
}

it("every crash point of the lab belongs to a test", async () => {
  const offered = await list(`${living.url}/lab/crash-points`);
  expect([...offered].sort()).toEqual([...new Set([...INVOICE_POINTS, ...CHARGE_POINTS, ...REFUND_POINTS])].sort());
});

describe("an invoice whose process is killed", () => {
  it.each(INVOICE_POINTS)("at %s exists once after a retry", async (point) => {
    const { submission: invoice, answer } = await crashAndRetry((name) => invoiceOf(`invoice-${name}`), point);
    expect(answer.status).toBe(201);
    await expectReplay(answer, invoice);
    expect(await rowsOf(lab, "invoices", invoice.key)).toBe(1);
    expect(await tracesOf(lab, invoice)).toMatchObject({ entries: [{ state: "succeeded" }], messages: 1 });
  });
});

describe("a charge whose process is killed", () => {
  it.each(CHARGE_POINTS)("at %s is made once after a retry", async (point) => {
    const { submission: charge, answer } = await crashAndRetry((name) => chargeOf(`charge-${name}`), point);
    expect(answer.status).toBe(201);
    expect(answer.json().status).toBe("succeeded");
    await expectReplay(answer, charge);
    expect(await rowsOf(lab, "charges", charge.key)).toBe(1);
    expect(await effectsAtProvider(lab.psp, charge.amount)).toEqual({ authorizations: 1, captures: 1 });
    expect(await tracesOf(lab, charge)).toMatchObject({ entries: [{ state: "succeeded" }], messages: 1 });
  });
});
