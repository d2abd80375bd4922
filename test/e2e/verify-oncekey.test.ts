import { beforeAll, describe, expect, it } from "vitest";
import { send } from "./support/client.ts";
import { type Lab, openLab, type Program } from "./support/crash-lab.ts";
import { ALL_PASSED, CHARGE, INVOICE, verify } from "./support/verify.ts";

// `oncekey verify`, as a user runs it, against the payments example on PostgreSQL: it sees the example only by HTTP.

const DECLINED = '{"amount_minor":1200,"currency":"EUR","source":"tok_declined"}';

let lab: Lab;
beforeAll(async () => {
  lab = await openLab();
});

/** A refund of a charge that is large enough for every refund of a run. */
async function refundOf(api: Program, key: Readonly<Record<string, string>> = {}): Promise<string> {
  const charge = CHARGE.replace("1200", "900000000000000000000");
  const made = await send("POST", `${api.url}/v1/charges`, { key: "charge-to-refund", headers: key, body: charge });
  expect(made.status).toBe(201);
  return JSON.stringify({ charge_id: made.json().id, amount_minor: 5 });
}

/** What no operation of the example leaves out. */
const EXPECTED = [
  ...["accepted", "replay-status", "replay-bytes", "replay-headers", "replay-once", "replay-date"],
  ...["duplicates-10", "duplicates-50", "mismatch-after", "mismatch-running", "numbers-exact"],
  ...["equal-order", "equal-space", "equal-number", "key-missing", "key-empty", "key-long"],
  ...["other-tenant", "other-operation", "replay-unauthenticated", "replay-revoked"],
  ...["hang-up-sending", "hang-up-waiting"],
];

describe.each(["ietf", "stripe"])("the example in profile %s", (profile) => {
  let api: Program;
  beforeAll(async () => {
    api = await lab.api({ ONCEKEY_PROFILE: profile });
  });

  it("passes with invoices (a transaction)", async () => {
    const found = await verify(lab, api, "/v1/invoices", INVOICE, ["--profile", profile]);
    expect(found).toMatchObject(ALL_PASSED);
    expect(found.passed).toEqual(expect.arrayContaining([...EXPECTED, "replay-marker", "method-get"]));
  });

  it("passes with charges (phases)", async () => {
    const found = await verify(lab, api, "/v1/charges", CHARGE, ["--profile", profile, "--refused-body", DECLINED]);
    expect(found).toMatchObject(ALL_PASSED);
    expect(found.passed).toEqual(expect.arrayContaining([...EXPECTED, "refusal-replayed"]));
  });

  it("passes with refunds (a captured handler)", async () => {
    const body = await refundOf(api);
    const found = await verify(lab, api, "/v1/refunds", body, ["--profile", profile]);
    expect(found).toMatchObject(ALL_PASSED);
    expect(found.passed).toEqual(expect.arrayContaining(EXPECTED));
  });
});
