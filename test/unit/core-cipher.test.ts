import assert from "node:assert/strict";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { BODY_TAG_LENGTH, newBodyKey, openBody, sealBody } from "../../src/core/body-cipher.ts";
import {
  type Cipher,
  cipherOf,
  type EncryptionKey,
  openPayload,
  ownerOf,
  payloadSealedUnder,
  type SealedPart,
  sealedUnder,
  sealPayload,
} from "../../src/core/cipher.ts";
import { encodeValue } from "../../src/core/codec.ts";
import { inChunks } from "../support/memory-bodies.ts";

const keyOf = (id: number, fill = id): EncryptionKey => ({ id, key: new Uint8Array(32).fill(fill) });
const owner = new Uint8Array(32).fill(1);
const plain = encodeValue({ source: "tok_visa", amount: 9007199254740993n });

const refusal = (run: () => unknown): { code?: unknown; message?: string } => {
  try {
    run();
  } catch (error) {
    return error as { code?: unknown; message?: string };
  }
  return assert.fail("must be refused");
};

const opensAs = (cipher: Cipher, stored: Uint8Array, from = owner, part: SealedPart = "input") =>
  refusal(() => cipher.open(from, part, stored)).code;

describe("what is stored of requests", () => {
  it("is sealed so that nothing of it can be read, and opens to the same bytes", () => {
    const cipher = cipherOf([keyOf(1)]);
    const sealed = cipher.seal(owner, "input", plain);
    expect(Buffer.from(sealed).includes("tok_visa")).toBe(false);
    expect(cipher.open(owner, "input", sealed)).toEqual(plain);
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) =>
        assert.deepEqual(cipher.open(owner, "context", cipher.seal(owner, "context", bytes)), bytes),
      ),
    );
  });

  it("is sealed under the key that was given, also when the caller wipes its bytes afterwards", () => {
    const { id, key } = keyOf(1);
    const cipher = cipherOf([{ id, key }]);
    key.fill(0);
    const sealed = cipher.seal(owner, "input", plain);
    expect(cipherOf([keyOf(1)]).open(owner, "input", sealed)).toEqual(plain);
    expect(opensAs(cipherOf([keyOf(1, 0)]), sealed)).toBe("oncekey_store_broken");
  });

  it("is sealed differently every time", () => {
    const cipher = cipherOf([keyOf(1)]);
    const sealed = Array.from({ length: 50 }, () => Buffer.from(cipher.seal(owner, "input", plain)).toString("hex"));
    expect(new Set(sealed).size).toBe(50);
    expect(new Set(sealed.map((each) => each.slice(4, 28))).size).toBe(50);
  });

  it("has a frozen form: version, key id, nonce, tag, ciphertext, sealed once by other code", () => {
    const stored = "8103000102030405060708090a0b911e81c07055e5907d4866601887e01619facb113f33e834";
    const opened = cipherOf([keyOf(3, 7)]).open(owner, "input", new Uint8Array(Buffer.from(stored, "hex")));
    expect(new TextDecoder().decode(opened)).toBe('\u0001{"a":1}');
  });

  it("does not open in another row or another column", () => {
    const cipher = cipherOf([keyOf(1)]);
    const sealed = cipher.seal(owner, "input", plain);
    expect(opensAs(cipher, sealed, new Uint8Array(32).fill(2))).toBe("oncekey_store_broken");
    expect(opensAs(cipher, sealed, owner, "context")).toBe("oncekey_store_broken");
    expect(opensAs(cipher, sealed, owner, "message")).toBe("oncekey_store_broken");
  });

  it("does not open once any bit was changed, or an end is missing", () => {
    const cipher = cipherOf([keyOf(1)]);
    const sealed = cipher.seal(owner, "input", plain);
    for (let index = 2; index < sealed.length; index += 1) {
      const changed = sealed.map((byte, at) => (at === index ? byte ^ 1 : byte));
      expect(opensAs(cipher, changed), `byte ${index}`).toBe("oncekey_store_broken");
    }
    for (const length of [2, 13, 14, 20, 29, 30, sealed.length - 1]) {
      expect(opensAs(cipher, sealed.subarray(0, length)), `${length} bytes`).toBe("oncekey_store_broken");
    }
  });

  it("does not open with a part of its tag: fewer bits would be guessed", () => {
    const cipher = cipherOf([keyOf(1)]);
    const sealed = cipher.seal(owner, "input", new Uint8Array());
    expect(cipher.open(owner, "input", sealed)).toEqual(new Uint8Array());
    for (let length = 14; length < sealed.length; length++) {
      expect(opensAs(cipher, sealed.subarray(0, length)), `${length} bytes`).toBe("oncekey_store_broken");
    }
  });

  it("tells whether anything is sealed at all, and why something does not open", () => {
    expect([cipherOf([]).seals, cipherOf([keyOf(1)]).seals]).toEqual([false, true]);
    const cipher = cipherOf([keyOf(255)]);
    const cut = cipher.seal(owner, "input", plain).subarray(0, 40);
    expect(refusal(() => cipher.open(owner, "input", cut))).toMatchObject({ cause: expect.any(Error) });
    const unsealed = refusal(() => openPayload(cipher, { id: "m1", tenant: "acme" }, "sealed:AQID")).message;
    expect(unsealed).toContain("it was changed, or belongs to another row. It was left");
  });

  it("opens under every key of the ring while the newest one seals", () => {
    const before = cipherOf([keyOf(1)]).seal(owner, "input", plain);
    const rotated = cipherOf([keyOf(2), keyOf(1)]);
    const after = rotated.seal(owner, "input", plain);
    expect([before[1], after[1]]).toEqual([1, 2]);
    expect(rotated.open(owner, "input", before)).toEqual(plain);
    expect(rotated.open(owner, "input", after)).toEqual(plain);
    expect(opensAs(cipherOf([keyOf(1)]), after)).toBe("oncekey_config_invalid");
    expect(opensAs(cipherOf([]), after)).toBe("oncekey_config_invalid");
  });

  it("does not open under another key of the same id", () => {
    const sealed = cipherOf([keyOf(1)]).seal(owner, "input", plain);
    expect(opensAs(cipherOf([keyOf(1, 9)]), sealed)).toBe("oncekey_store_broken");
    expect(refusal(() => cipherOf([keyOf(1, 9)]).open(owner, "input", sealed)).message).toContain(
      "key 1 is not the one",
    );
  });

  it("is left as it is without keys, and what was stored before there were any still opens", () => {
    const stored = cipherOf([]).seal(owner, "input", plain);
    expect(stored).toEqual(plain);
    expect(cipherOf([]).open(owner, "input", stored)).toEqual(plain);
    expect(cipherOf([keyOf(1)]).open(owner, "input", stored)).toEqual(plain);
  });

  it("is never named in a refusal, nor is any key", () => {
    const cipher = cipherOf([keyOf(1)]);
    const sealed = cipher.seal(owner, "input", plain);
    sealed[40] = (sealed[40] ?? 0) ^ 1;
    const messages = [
      refusal(() => cipher.open(owner, "input", sealed)).message,
      refusal(() => cipherOf([keyOf(7)]).open(owner, "input", sealed)).message,
    ];
    for (const message of messages) expect(message).toMatch(/left as it is/);
    expect(messages[1]).toContain("key 1");
  });
});

describe("a ring of encryption keys", () => {
  it.each([
    ["an id of 0", [keyOf(0)]],
    ["an id that is no byte", [keyOf(256)]],
    ["an id that is no whole number", [keyOf(1.5)]],
    ["two keys of one id", [keyOf(1), keyOf(1, 2)]],
    ["what is no list", { length: 0 } as unknown as EncryptionKey[]],
    ["a short key", [{ id: 1, key: new Uint8Array(16) }]],
    ["a key that is text", [{ id: 1, key: "0123456789abcdef0123456789abcdef" as unknown as Uint8Array }]],
  ])("is refused at start with %s", (_name, ring) => {
    const { code, message } = refusal(() => cipherOf(ring));
    expect(code).toBe("oncekey_config_invalid");
    expect(message).toMatch(/Nothing was started/);
    expect(message).not.toContain("0123456789abcdef");
  });
});

describe("an owner with its tenant", () => {
  it("differs wherever id or tenant differ, and has a frozen form", () => {
    const owners = [ownerOf("ab", "c"), ownerOf("a", "bc"), ownerOf("abc", ""), ownerOf(Uint8Array.of(97, 98), "d")];
    expect(new Set(owners.map((one) => Buffer.from(one).toString("hex"))).size).toBe(4);
    expect(Buffer.from(ownerOf("ab", "c")).toString("hex")).toBe("0101000000026162010000000163");
    expect(ownerOf(Uint8Array.of(97, 98), "c")).toEqual(ownerOf("ab", "c"));
  });
});

describe("the payload of a message", () => {
  const json = '{"amount":9007199254740993,"name":"Ž"}';
  const message = { id: "m1", tenant: "acme" };

  it("is JSON as it is without keys, and text that is no JSON with them", () => {
    expect(sealPayload(cipherOf([]), message, json)).toBe(json);
    const sealed = sealPayload(cipherOf([keyOf(3)]), message, json);
    expect(sealed).toMatch(/^sealed:[\w-]+$/);
    expect(() => JSON.parse(sealed)).toThrow();
    expect(openPayload(cipherOf([keyOf(4), keyOf(3)]), message, sealed)).toBe(json);
    expect(openPayload(cipherOf([keyOf(4)]), message, json)).toBe(json);
    expect([payloadSealedUnder(sealed), payloadSealedUnder(json)]).toEqual([3, null]);
  });

  it("opens for no other message and no other tenant, and not once it was changed or cut", () => {
    const cipher = cipherOf([keyOf(3)]);
    const sealed = sealPayload(cipher, message, json);
    const cases = [
      [{ ...message, id: "m2" }, sealed],
      [{ ...message, tenant: "globex" }, sealed],
      [message, sealed.slice(0, -2)],
      [message, "sealed:"],
      [message, "sealed:AQID"],
      [message, `sealed:${Buffer.from(json).toString("base64url")}`],
    ] as const;
    for (const [owner, stored] of cases) {
      expect(refusal(() => openPayload(cipher, owner, stored)).code, stored).toBe("oncekey_store_broken");
    }
    expect(refusal(() => openPayload(cipherOf([]), message, sealed)).code).toBe("oncekey_config_invalid");
  });
});

it("a stored value tells the key that it is sealed under, and that it is not sealed", () => {
  expect(sealedUnder(cipherOf([keyOf(9)]).seal(owner, "outcome", plain))).toBe(9);
  for (const stored of [plain, new Uint8Array(), Uint8Array.of(0x81)]) expect(sealedUnder(stored)).toBeNull();
});

describe("a body outside of the database", () => {
  const collect = async (chunks: AsyncIterable<Uint8Array>) => {
    const all: Uint8Array[] = [];
    for await (const chunk of chunks) all.push(chunk);
    return new Uint8Array(Buffer.concat(all));
  };
  const key = new Uint8Array(32).fill(5);
  const sealedOf = (bytes: Uint8Array, id: Uint8Array = owner) => collect(sealBody(key, id, inChunks(bytes, 7)));
  const openedOf = (sealed: Uint8Array, size: number, id: Uint8Array = owner, under: Uint8Array = key) =>
    collect(openBody(under, id, inChunks(sealed, size), sealed.length));

  it("opens to the same bytes however it comes in chunks", async () => {
    for (const length of [0, 1, 15, 16, 17, 1_000]) {
      const bytes = new Uint8Array(length).map((_, at) => at);
      const sealed = await sealedOf(bytes);
      expect(sealed.length).toBe(length + BODY_TAG_LENGTH);
      for (const size of [1, 5, 16, 17, 2_000]) {
        expect(await openedOf(sealed, size)).toEqual(bytes);
        for await (const chunk of openBody(key, owner, inChunks(sealed, size), sealed.length)) {
          expect(chunk.length).toBeGreaterThan(0);
        }
      }
    }
  });

  it("does not open for another entry, under another key, once it was changed, or if it is not of its length", async () => {
    const sealed = await sealedOf(plain);
    const refused = [
      openedOf(sealed, 9, new Uint8Array(32).fill(2)),
      openedOf(sealed, 9, owner, newBodyKey()),
      ...Array.from(sealed, (_, index) =>
        openedOf(
          Uint8Array.from(sealed, (byte, at) => (at === index ? byte ^ 1 : byte)),
          9,
        ),
      ),
      ...[16, 17, sealed.length - 1].map((length) => openedOf(sealed.subarray(0, length), 9)),
      collect(openBody(key, owner, inChunks(sealed, 9), sealed.length + 1)),
      collect(openBody(key, owner, inChunks(sealed, 9), sealed.length - 1)),
    ];
    for (const one of refused) {
      await expect(one).rejects.toMatchObject({ code: "oncekey_store_broken", cause: expect.any(Error) });
    }
  });

  it("has a frozen form: ciphertext, then the tag", async () => {
    const stored = "68cd37f1b92140e8afb77ec16778c32ddd215c893efe";
    expect(Buffer.from(await sealedOf(new TextEncoder().encode("a body"))).toString("hex")).toBe(stored);
  });
});
