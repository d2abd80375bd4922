import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { beforeAll, expect, it } from "vitest";
import { passTime } from "../support/postgres.ts";
import { behave, type RawAnswer, send } from "./support/client.ts";
import { counted, holdOperations, openSdkWorld, type SdkWorld, untilRunning } from "./support/sdk-cases.ts";

// A repeatable action as the Azure guidelines have it, asked over plain HTTP.

const HOUR = 3_600_000;

let world: SdkWorld;

beforeAll(async () => {
  world = await openSdkWorld("azure");
});

/** The two headers of a new repeatable request. */
function repeatable(firstSentAtMs = Date.now()): Record<string, string> {
  return {
    "repeatability-request-id": randomUUID(),
    "repeatability-first-sent": new Date(firstSentAtMs).toUTCString(),
  };
}

interface Payment {
  readonly amountMinor?: number;
  readonly source?: string;
  readonly token?: string | null;
}

function pay(headers: Record<string, string>, { token = "sk_test_acme", ...wanted }: Payment = {}): Promise<RawAnswer> {
  const url = `http://127.0.0.1:${world.proxy.port}/payments?api-version=2026-11-01`;
  const body = { amountMinor: 1_999, currency: "EUR", source: "tok_visa", ...wanted };
  return send("POST", url, { token, headers, body });
}

/** What a client does: the same request again until it is told what became of it. */
async function payAgain(headers: Record<string, string>): Promise<RawAnswer> {
  for (let attempts = 0; attempts < 300; attempts++) {
    const answer = await pay(headers).catch(() => null);
    if (answer !== null && answer.headers["retry-after"] === undefined) return answer;
    await sleep(100);
  }
  throw new Error("There was never a final answer.");
}

const PAYMENT = {
  id: expect.stringMatching(/^ch_/),
  status: "succeeded",
  amountMinor: 1_999,
  currency: "EUR",
  createdAt: expect.any(String),
};

/** Status, `Repeatability-Result` and error code, which the header repeats. */
function told({ status, headers, json }: RawAnswer): unknown[] {
  const code = json().error?.code;
  expect(headers["x-ms-error-code"]).toBe(code);
  return [status, headers["repeatability-result"], code];
}

it("first call and repetition: one payment, accepted both times, the same bytes", async () => {
  const headers = repeatable();
  const { given, executions } = await counted(world, async () => [await pay(headers), await pay(headers)]);
  expect(given.map(told)).toEqual(Array.from({ length: 2 }, () => [201, "accepted", undefined]));
  expect(given[0]?.json()).toEqual(PAYMENT);
  expect(given[1]?.bytes).toEqual(given[0]?.bytes);
  expect(given[0]?.headers["x-ms-request-id"]).not.toBe(given[1]?.headers["x-ms-request-id"]);
  expect(executions).toBe(1);
});

it.each(["before", "after"] as const)("connection cut %s the work: the client's retry does it once", async (cut) => {
  world.proxy.plan({ cut });
  const { given, executions, attempts } = await counted(world, () => payAgain(repeatable()));
  expect(given.json()).toEqual(PAYMENT);
  expect([attempts.length, executions]).toEqual([2, 1]);
});

it("rejects other content under the id, one header without the other, and malformed ones", async () => {
  const headers = repeatable();
  const { given, executions } = await counted(world, async () => [
    await pay(headers),
    await pay(headers, { amountMinor: 2_000 }),
    await pay({ "repeatability-request-id": randomUUID() }),
    await pay({ "repeatability-first-sent": new Date().toUTCString() }),
    await pay({ ...repeatable(), "repeatability-request-id": "7" }),
    await pay({ ...repeatable(), "repeatability-first-sent": new Date().toISOString() }),
  ]);
  expect(given.map(told)).toEqual([
    [201, "accepted", undefined],
    [400, "rejected", "RepeatedRequestMismatch"],
    [400, "rejected", "InvalidRequest"],
    [400, "rejected", "MissingRequiredHeader"],
    [400, "rejected", "InvalidHeaderValue"],
    [400, "rejected", "InvalidRequest"],
  ]);
  expect(executions).toBe(1);
});

it("duplicate of a first that runs for long: 409 and accepted, then the first one's answer", async () => {
  const headers = repeatable();
  const { given, executions } = await counted(world, async () => {
    const held = await holdOperations(world);
    const first = pay(headers);
    await untilRunning(world);
    const early = await pay(headers).finally(held.release);
    return { early, later: await payAgain(headers), first: await first };
  });
  expect(told(given.early)).toEqual([409, "accepted", "RepeatedRequestInProgress"]);
  expect(given.early.headers["retry-after"]).toBe("1");
  expect(given.later.bytes).toEqual(given.first.bytes);
  expect(executions).toBe(1);
});

it("refuses a retry that comes after all is forgotten, and runs nothing", async () => {
  const headers = repeatable();
  await pay(headers);
  // The same request as it would be asked 25 hours later: what is stored has grown old and is gone.
  await passTime(world.lab.databaseUrl, 25 * HOUR);
  expect(await world.lab.command(["purge"])).toMatchObject({ code: "0", output: expect.stringContaining("Purged") });
  const later = { ...headers, "repeatability-first-sent": new Date(Date.now() - 25 * HOUR).toUTCString() };
  const { given, executions } = await counted(world, () => pay(later));
  expect(told(given)).toEqual([412, "rejected", "RepeatedRequestTooLate"]);
  expect(given.json().error.target).toBe("Repeatability-First-Sent");
  expect(executions).toBe(0);
});

it("store down: 503 that says nothing of repeatability; the same request goes through when it is back", async () => {
  const headers = repeatable();
  world.database.down();
  const { given, executions } = await counted(world, async () => {
    const down = await pay(headers).finally(world.database.up);
    return { down, later: await payAgain(headers) };
  });
  expect(told(given.down)).toEqual([503, undefined, "ServiceUnavailable"]);
  expect(given.later.json()).toEqual(PAYMENT);
  expect(executions).toBe(1);
});

it("replays a declined card, which is a 4xx, and runs again after a 5xx", async () => {
  const [declined, faulty] = [repeatable(), repeatable()];
  const { given, effects } = await counted(world, async () => {
    const kept = [await pay(declined, { source: "tok_declined" }), await pay(declined, { source: "tok_declined" })];
    await world.lab.sql("ALTER TABLE charges RENAME TO charges_away");
    const fault = await pay(faulty);
    await world.lab.sql("ALTER TABLE charges_away RENAME TO charges");
    return { kept, fault, later: await payAgain(faulty) };
  });
  expect(given.kept.map(told)).toEqual(Array.from({ length: 2 }, () => [402, "accepted", "CardDeclined"]));
  expect(given.kept[1]?.bytes).toEqual(given.kept[0]?.bytes);
  expect(told(given.fault)).toEqual([500, undefined, "InternalError"]);
  expect(given.later.json()).toEqual(PAYMENT);
  expect(effects).toMatchObject({ charges: 2, authorizations: 2, captures: 1 });
});

it("a provider that is down leaves the outcome open: 409 and accepted, until it is known", async () => {
  const headers = repeatable();
  const { given, effects } = await counted(world, async () => {
    await behave(world.lab.psp.url, { down: true });
    const open = await pay(headers);
    await behave(world.lab.psp.url, { down: false });
    return { open, later: await payAgain(headers) };
  });
  expect(told(given.open)).toEqual([409, "accepted", "RepeatedRequestOutcomeUnknown"]);
  expect(given.later.json()).toEqual(PAYMENT);
  expect(effects).toMatchObject({ charges: 1, authorizations: 1, captures: 1 });
});

it("an action that is not repeatable says 501 to whoever asks for it", async () => {
  const url = `${world.api.url}/payments/ch_1:remind`;
  expect((await send("POST", url)).status).toBe(202);
  expect(told(await send("POST", url, { headers: repeatable() }))).toEqual([
    501,
    undefined,
    "RepeatabilityNotSupported",
  ]);
});

it("who may not ask hears 401; without the headers every request is its own", async () => {
  for (const token of [null, "sk_test_nobody"]) {
    expect(told(await pay(repeatable(), { token }))).toEqual([401, undefined, "Unauthorized"]);
  }
  const { given, executions } = await counted(world, async () => [await pay({}), await pay({})]);
  expect(given.map(told)).toEqual(Array.from({ length: 2 }, () => [201, undefined, undefined]));
  expect(executions).toBe(2);
});

it("serves the common routes too: the pair of headers, refusals in Azure's words", async () => {
  const headers = repeatable();
  const ask = async (amount_minor: number) => {
    const body = { customer_id: "cus_1", amount_minor, currency: "EUR" };
    return told(await send("POST", `${world.api.url}/v1/invoices`, { headers, body }));
  };
  const { given, executions } = await counted(world, async () => [await ask(1), await ask(1), await ask(2)]);
  expect(given).toEqual([
    [201, "accepted", undefined],
    [201, "accepted", undefined],
    [400, "rejected", "RepeatedRequestMismatch"],
  ]);
  expect(executions).toBe(1);
});
