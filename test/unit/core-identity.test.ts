import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { identityOf } from "../../src/core/identity.ts";

const hex = (id: Uint8Array) => Buffer.from(id).toString("hex");
const idOf = (tenant: string, client: string | null, operation: string, key: string) =>
  hex(identityOf({ tenant, client }, operation, key).id);

describe("an identity", () => {
  it("is shared by no two scopes, operations and keys, wherever one part ends and the next begins", () => {
    const part = fc.string({ unit: fc.constantFrom("a", "_", "b", "\u0000", ":"), maxLength: 3 });
    const parts = fc.tuple(part, fc.option(part), part, part);
    fc.assert(
      fc.property(parts, parts, (one, other) => {
        expect(idOf(...one) === idOf(...other)).toBe(JSON.stringify(one) === JSON.stringify(other));
      }),
      { numRuns: 3_000 },
    );
    expect(idOf("a_b", "c", "op", "k")).not.toBe(idOf("a", "b_c", "op", "k"));
    expect(idOf("a", null, "op", "k")).not.toBe(idOf("a", "", "op", "k"));
  });

  it("is frozen: its pre-image was digested once by other code", () => {
    // sha256 of 01, then per part: 01 and its length in 4 bytes, big endian, and its bytes (00 alone for none).
    expect(idOf("acme", "app", "invoices.create", "k1")).toBe(
      "e724403b4a8391334d74bf684a77cbbb3554d251eb3c49a4798004c21681a4ca",
    );
  });

  it("is one for all operations where keys span the account", () => {
    const account = (operation: string) =>
      hex(identityOf({ tenant: "acme", client: null }, operation, "k", { keySpace: "account" }).id);
    expect(account("a")).toBe(account("b"));
    expect(account("a")).not.toBe(idOf("acme", null, "a", "k"));
  });

  it("is another one in each partition, and in none of them the one without", () => {
    const within = (partition: string | null, key = "k") =>
      hex(identityOf({ tenant: "acme", client: null }, "a", key, { partition }).id);
    const ids = [within(null), within(""), within("eu-west-1"), within("k"), within("eu-west-1", "k2")];
    expect(new Set(ids).size).toBe(ids.length);
    expect(within(null)).toBe(idOf("acme", null, "a", "k"));
  });
});
