import { createHash } from "node:crypto";
import fc from "fast-check";
import { createClient, memoryStorage } from "oncekey/client";
import { describe, expect, it } from "vitest";
import { newKey } from "../../src/client/key.ts";
import { parseKey } from "../../src/core/key.ts";
import { NOON } from "../support/client-desk.ts";

const URL_OF_CHARGES = "https://api.example.com/v1/charges";
const body = '{"amount":100}';
const submission = (key: string, text = body) =>
  createClient({ storage: memoryStorage() }).submission("cart-1", { url: URL_OF_CHARGES, body: text, key });
const refused = expect.objectContaining({ code: "oncekey_submission_invalid" });

describe("a key of the client's", () => {
  it("is a random UUID of version 4", () => {
    const keys = Array.from({ length: 1_000 }, () => newKey(4));
    expect(new Set(keys).size).toBe(1_000);
    for (const key of keys)
      expect(key).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
  });

  it("is one of version 7 where asked, which begins with the instant", () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 2 ** 48 - 1 }), (nowMs) => {
        const key = newKey(7, nowMs);
        expect(key).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
        expect(Number.parseInt(key.replaceAll("-", "").slice(0, 12), 16)).toBe(nowMs);
      }),
    );
  });

  it("comes with the version that the options name, and in a page without TLS too", async () => {
    const { randomUUID, subtle } = globalThis.crypto;
    Object.defineProperties(globalThis.crypto, {
      randomUUID: { value: undefined, configurable: true },
      subtle: { value: undefined, configurable: true },
    });
    try {
      const client = createClient({ storage: memoryStorage(), keyVersion: 7, now: () => NOON });
      const { key } = await client.submission("cart-1", { url: URL_OF_CHARGES, body });
      expect(key).toBe(
        `${NOON.toString(16)
          .padStart(12, "0")
          .replace(/^(.{8})/, "$1-")}${key.slice(13)}`,
      );
      expect((await submission("order-4711-attempt")).key).toBe("order-4711-attempt");
    } finally {
      Object.defineProperties(globalThis.crypto, {
        randomUUID: { value: randomUUID, configurable: true },
        subtle: { value: subtle, configurable: true },
      });
    }
  });
});

describe("a key of the caller's", () => {
  const good = [
    "4711",
    "order-4711:1",
    "0197f3a4-7a8e-7cc0-98c4-dc0c0c07398f",
    "ffffffff-ffff-4fff-bfff-ffffffffffff",
    "x".repeat(255),
  ];
  it.each(good)("is used as it is: %s", async (key) => {
    expect((await submission(key)).key).toBe(key);
  });

  const malformed = ["", " ", "a b", "a,b", 'a"b', "a\\b", "ключ", "x".repeat(256), "a\u0000", "a\n"];
  it.each(malformed)("is refused where servers refuse or misread it: %j", async (key) => {
    await expect(submission(key)).rejects.toEqual(refused);
  });

  it("that is taken here is taken by the server, and the same there", async () => {
    await fc.assert(
      fc.asyncProperty(fc.string({ unit: "binary-ascii", maxLength: 20 }), async (key) => {
        const taken = await submission(key).then(
          (made) => made.key,
          () => null,
        );
        if (taken !== null) expect(parseKey([taken])).toEqual({ kind: "key", key });
      }),
    );
  });

  const digest = (name: string, text: string) => createHash(name).update(text);
  const uuidOf = (hex: string, version: string) =>
    `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${version}${hex.slice(13, 16)}-8${hex.slice(17, 20)}-${hex.slice(20, 32)}`;
  const derived: readonly (readonly [string, string])[] = [
    ...["sha1", "sha256", "sha512"].flatMap((name) =>
      [body, URL_OF_CHARGES + body].flatMap((text, at) =>
        (["hex", "base64", "base64url"] as const).map(
          (form) =>
            [
              `${name} ${at === 0 ? "of the body" : "of address and body"}, ${form}`,
              digest(name, text).digest(form),
            ] as const,
        ),
      ),
    ),
    ["in capitals", digest("sha256", body).digest("hex").toUpperCase()],
    ["cut short", digest("sha256", body).digest("hex").slice(0, 24)],
    [
      "with the dashes of a UUID",
      digest("sha256", body)
        .digest("hex")
        .replace(/^(.{8})(.{4})(.{4})(.{4})(.{12}).*/, "$1-$2-$3-$4-$5"),
    ],
    ["a UUID of version 5", uuidOf(digest("sha1", "whatever").digest("hex"), "5")],
    ["a UUID of version 3", uuidOf(digest("md5", "whatever").digest("hex"), "3")],
  ];
  it.each(derived)("is refused where it says nothing but the request: %s", async (_, key) => {
    await expect(submission(key)).rejects.toEqual(refused);
  });

  it("that only happens to begin like a digest is no digest", async () => {
    const key = digest("sha256", body).digest("hex").slice(0, 8);
    expect((await submission(key)).key).toBe(key);
  });

  it("is refused where it is the body itself", async () => {
    await expect(submission("amount=100", "amount=100")).rejects.toEqual(refused);
  });

  it("is never shown in the error", async () => {
    const key = digest("sha256", body).digest("hex");
    for (const wrong of [key, "secret key"]) {
      const error: unknown = await submission(wrong).catch((raised: unknown) => raised);
      expect(String(error)).not.toContain(wrong);
    }
  });

  it("that is another one than before is another request, and in the way", async () => {
    const client = createClient({ storage: memoryStorage(), fetch: async () => new Response("{}") });
    const request = { url: URL_OF_CHARGES, body };
    expect(await client.submit("cart-1", { ...request, key: "first" })).toMatchObject({ kind: "succeeded" });
    expect(await client.submit("cart-1", { ...request, key: "second" })).toMatchObject({ kind: "in_the_way" });
    expect(await client.submit("cart-1", request)).toMatchObject({ kind: "succeeded" });
  });
});
