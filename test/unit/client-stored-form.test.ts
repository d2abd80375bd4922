import type { StoredSubmission } from "oncekey/client";
import { describe, expect, it } from "vitest";
import { readStored } from "../../src/client/stored-form.ts";

const NOON = Date.UTC(2026, 0, 31, 12);

describe("a stored submission that is damaged in one place", () => {
  const sound: StoredSubmission = {
    form: 1,
    name: "cart-1",
    key: "k",
    request: { method: "POST", url: "https://api.test/", headers: [], bodyBase64: null, keyHeader: "Idempotency-Key" },
    createdAt: NOON,
    firstSentAt: NOON,
    attempts: 1,
    spentMs: 0,
    spentAt: NOON,
    retentionMs: null,
    settled: { kind: "succeeded", at: NOON, replayed: false, status: 201, headers: [], bodyBase64: "" },
  };

  /** Each member of it and of what is in it, taken away or of another kind. */
  function* damaged(): Generator<[string, unknown]> {
    const places = [[], ["request"], ["settled"]] as const;
    for (const [place] of places) {
      const inner = (place === undefined ? sound : sound[place]) as object;
      for (const member of Object.keys(inner)) {
        if (member === "replayed") continue;
        for (const value of [undefined, Number.NaN, true]) {
          const other = { ...inner, [member]: value };
          yield [`${place ?? ""} ${member}: ${value}`, place === undefined ? other : { ...sound, [place]: other }];
        }
      }
    }
  }

  it("is never taken for one", () => {
    expect(readStored(structuredClone(sound), "cart-1", "It")).toEqual(sound);
    for (const [what, value] of damaged()) {
      expect(() => readStored(value, "cart-1", "It"), what).toThrow(/cannot be read/);
    }
  });
});
