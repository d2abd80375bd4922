import assert from "node:assert/strict";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type Cipher, cipherOf, type EncryptionKey, type SealedPart } from "../../src/core/cipher.ts";
import { encodeValue } from "../../src/core/codec.ts";

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
    ["a short key", [{ id: 1, key: new Uint8Array(16) }]],
    ["a key that is text", [{ id: 1, key: "0123456789abcdef0123456789abcdef" as unknown as Uint8Array }]],
  ])("is refused at start with %s", (_name, ring) => {
    const { code, message } = refusal(() => cipherOf(ring));
    expect(code).toBe("oncekey_config_invalid");
    expect(message).toMatch(/Nothing was started/);
    expect(message).not.toContain("0123456789abcdef");
  });
});
