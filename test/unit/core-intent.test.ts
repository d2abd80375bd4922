import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { identityOf } from "../../src/core/identity.ts";
import { derivedKey, derivedUuid, type KeyForm, requestDigest } from "../../src/core/intent.ts";
import { providerKeyLimits } from "../../src/core/key-limits.ts";

const FORMS = ["base64url", "uuid", "hex"] as const satisfies readonly KeyForm[];
const SHAPES: Record<KeyForm, RegExp> = {
  base64url: /^[A-Za-z0-9_-]{43}$/,
  uuid: /^[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/,
  hex: /^[0-9a-f]{32}$/,
};

/** All that a derived key depends on. */
interface Source {
  readonly tenant: string;
  readonly client: string | null;
  readonly operation: string;
  readonly key: string;
  readonly fingerprint: Uint8Array;
  readonly call: string;
  readonly generation: number;
}

function keyOf({ tenant, client, operation, key, fingerprint, call, generation }: Source, form: KeyForm): string {
  const { id } = identityOf({ tenant, client }, operation, key);
  return derivedKey({ id, fingerprint }, call, generation, form);
}

// Few values, and such as run into each other when they are joined: most samples differ in one part only.
const text = fc.constantFrom("", "a", "b", "ab", "a_b", "a:b", "1", "ä", "\0");
const source: fc.Arbitrary<Source> = fc.record({
  tenant: text,
  client: fc.option(text),
  operation: text,
  key: text,
  fingerprint: fc.uint8Array({ minLength: 0, maxLength: 2, max: 2 }),
  call: text,
  generation: fc.integer({ min: 1, max: 12 }),
});
const sameSource = (a: Source, b: Source) =>
  JSON.stringify([a, [...a.fingerprint]]) === JSON.stringify([b, [...b.fingerprint]]);

describe("derived keys", () => {
  it("are shared by no two calls, tenants, clients, operations, keys, payloads or generations", () => {
    for (const form of FORMS) {
      fc.assert(
        fc.property(source, source, (a, b) => {
          expect(keyOf(a, form) === keyOf(b, form)).toBe(sameSource(a, b));
        }),
        { numRuns: 500 },
      );
    }
  });

  it("differ from their neighbour in each single part", () => {
    const base: Source = {
      tenant: "acme",
      client: "app",
      operation: "charges.create",
      key: "k",
      fingerprint: Uint8Array.of(1),
      call: "authorize",
      generation: 1,
    };
    const neighbours: Source[] = [
      base,
      { ...base, tenant: "globex" },
      { ...base, client: null },
      { ...base, client: "batch" },
      { ...base, operation: "charges.capture" },
      { ...base, key: "k2" },
      { ...base, fingerprint: Uint8Array.of(2) },
      { ...base, call: "capture" },
      { ...base, generation: 2 },
    ];
    for (const form of FORMS) {
      expect(new Set(neighbours.map((one) => keyOf(one, form))).size).toBe(neighbours.length);
    }
  });

  it("have the form that was asked for", () => {
    fc.assert(
      fc.property(source, (one) => {
        for (const form of FORMS) expect(keyOf(one, form)).toMatch(SHAPES[form]);
      }),
    );
  });

  it("are frozen", () => {
    const entry = { id: new Uint8Array(32).fill(7), fingerprint: Uint8Array.of(1, 2, 3) };
    const keys = FORMS.map((form) => derivedKey(entry, "authorize", 1, form));
    expect(derivedKey(entry, "authorize", 1)).toBe(keys[0]);
    expect(keys).toEqual([
      "FDIDP3iKvtZByc5Blzw4FUsZIbSRKvtn5duacv30qM0",
      "1432033f-788a-8ed6-81c9-ce41973c3815",
      "1432033f788abed641c9ce41973c3815",
    ]);
    expect(derivedKey(entry, "authorize", 2)).toBe("jgIilHauUJG32zPRLQGoUzhRzWdZb7AkBZUb3xHoUsg");
  });

  it("stay within what each provider takes, in the form that the table names", () => {
    const limits = Object.entries(providerKeyLimits);
    expect(limits.length).toBeGreaterThan(5);
    for (const [provider, { maxLength, characters, form }] of limits) {
      fc.assert(
        fc.property(source, (one) => {
          const key = keyOf(one, form);
          expect(key.length, provider).toBeLessThanOrEqual(maxLength);
          expect(key, provider).toMatch(new RegExp(`^(?:${characters})$`));
        }),
        { numRuns: 20 },
      );
    }
  });
});

describe("what else is derived for a call", () => {
  it("is the digest of its request: SHA-256, so that it can be told with other tools", () => {
    expect(Buffer.from(requestDigest(new TextEncoder().encode("abc"))).toString("hex")).toBe(
      "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
    );
  });

  it("is a UUID for a name, frozen: a resume must find the rows of the first run", () => {
    expect(derivedUuid(new Uint8Array(16).fill(7), "invoice")).toBe("6b93d8fb-1cad-8fb6-a510-6166acba7388");
  });

  it("is no UUID for a name that was cut within a character: it would be that of every other such name", () => {
    const seed = new Uint8Array(16);
    const cut = (text: string) => `row of ${text}`.slice(0, "row of ".length + 1);
    expect(cut("😀")).not.toBe(cut("𝄞"));
    for (const text of ["😀", "𝄞"]) {
      expect(() => derivedUuid(seed, cut(text))).toThrow(
        expect.objectContaining({ code: "oncekey_value_unsupported" }),
      );
    }
  });
});
