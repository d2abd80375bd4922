import { beforeAll, describe, expect, it } from "vitest";
import { type Lab, openLab } from "./support/crash-lab.ts";
import { ALL_PASSED, INVOICE, verify } from "./support/verify.ts";

// `oncekey verify` against the payments example with other settings and in the other dialects.

let lab: Lab;
beforeAll(async () => {
  lab = await openLab();
});

describe("the example's other ways", () => {
  it("says when to come back where duplicates do not wait", async () => {
    const api = await lab.api({ ONCEKEY_WAIT_MS: "50" });
    const found = await verify(lab, api, "/v1/invoices", INVOICE);
    expect(found).toMatchObject(ALL_PASSED);
    expect(found.passed).toEqual(expect.arrayContaining(["busy-answer", "retry-after"]));
  });

  it("keeps outcomes as long as it says", async () => {
    const api = await lab.api({ ONCEKEY_RETENTION_MS: "8000" });
    const found = await verify(lab, api, "/v1/invoices", INVOICE, ["--retention", "8s", "--only", "late-retry"]);
    expect(found).toMatchObject({ ...ALL_PASSED, passed: ["accepted", "late-retry"] });
  });

  it("speaks Stripe's dialect to forms on Stripe's own path", async () => {
    const api = await lab.api({ ONCEKEY_PROFILE: "stripe" });
    const form = "amount=1200&currency=eur&payment_method=pm_card_visa&confirm=true";
    const found = await verify(lab, api, "/v1/payment_intents", form, [
      ...["--profile", "stripe", "--content-type", "application/x-www-form-urlencoded"],
      ...["--count-url", `${api.url}/v1/charges`, "--skip", "other-operation"],
    ]);
    expect(found).toMatchObject(ALL_PASSED);
    expect(found.passed).toEqual(expect.arrayContaining(["duplicates-50", "mismatch-answer", "replay-marker"]));
  });

  it.each(["stripe-v2", "adyen", "paypal", "square", "google", "azure"])("passes in profile %s", async (profile) => {
    const api = await lab.api({ ONCEKEY_PROFILE: profile });
    const found = await verify(lab, api, "/v1/invoices", INVOICE, ["--profile", profile]);
    expect(found).toMatchObject(ALL_PASSED);
    expect(found.passed).toEqual(expect.arrayContaining(["duplicates-50", "mismatch-after", "other-tenant"]));
  });
});
