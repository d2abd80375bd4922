import fc from "fast-check";
import { createClient, memoryStorage, type SubmissionRequest } from "oncekey/client";
import { describe, expect, it } from "vitest";
import { fromBase64, toBase64 } from "../../src/client/bytes.ts";
import { jsonText } from "../../src/client/json-text.ts";
import { stringifyJson } from "../../src/core/json/stringify.ts";

const url = "https://api.example.com/v1/charges";
const refused = expect.objectContaining({ code: "oncekey_submission_invalid" });

/** What is kept of a request. */
async function kept(request: SubmissionRequest) {
  const storage = memoryStorage();
  await createClient({ storage }).submission("cart-1", request);
  const stored = (await storage.get("cart-1"))?.request;
  if (stored === undefined) throw new Error("Nothing was kept.");
  const body = stored.bodyBase64 === null ? null : Buffer.from(stored.bodyBase64, "base64").toString();
  return { ...stored, body, type: stored.headers.find(([name]) => name === "content-type")?.[1] };
}

describe("a request", () => {
  it("is fixed when the submission is made", async () => {
    const storage = memoryStorage();
    const bytes = new Uint8Array([1, 2, 3]);
    await createClient({ storage }).submission("cart-1", { url, body: bytes });
    bytes[0] = 9;
    expect((await storage.get("cart-1"))?.request.bodyBase64).toBe("AQID");
  });

  const forms: readonly (readonly [Partial<SubmissionRequest>, string | null, string | undefined])[] = [
    [{}, null, undefined],
    [{ json: null }, "null", "application/json"],
    [{ json: { a: 10n ** 20n, b: "ü" } }, '{"a":100000000000000000000,"b":"ü"}', "application/json"],
    [{ json: 1, headers: { "Content-Type": "application/vnd.x+json" } }, "1", "application/vnd.x+json"],
    [{ body: "text" }, "text", "text/plain;charset=UTF-8"],
    [{ body: new Uint8Array([65, 66]) }, "AB", undefined],
    [
      { body: new URLSearchParams({ a: "1 2", b: "ü" }) },
      "a=1+2&b=%C3%BC",
      "application/x-www-form-urlencoded;charset=UTF-8",
    ],
  ];
  it.each(forms)("has the bytes and the type of its body: %o", async (request, body, type) => {
    expect(await kept({ url, ...request })).toMatchObject({ body, type, method: "POST", url });
  });

  it("has its headers in one order, whatever order and case they came in", async () => {
    const one = await kept({ url, headers: { "X-B": "2", "x-a": "1" } });
    const other = await kept({
      url,
      headers: [
        ["x-a", "1"],
        ["x-b", "2"],
      ],
    });
    expect(one.headers).toEqual([
      ["x-a", "1"],
      ["x-b", "2"],
    ]);
    expect(other.headers).toEqual(one.headers);
  });

  it("has an absolute address: relative to the page where there is one, without its fragment", async () => {
    await expect(kept({ url: "/v1/charges" })).rejects.toEqual(refused);
    Object.assign(globalThis, { location: { href: "https://shop.example.com/checkout?cart=1" } });
    try {
      expect(await kept({ url: "/v1/charges#x" })).toMatchObject({ url: "https://shop.example.com/v1/charges" });
    } finally {
      delete (globalThis as { location?: unknown }).location;
    }
  });

  const wrong: readonly (readonly [string, Partial<SubmissionRequest>])[] = [
    ["a safe method", { method: "get" }],
    ["HEAD", { method: "HEAD" }],
    ["OPTIONS", { method: "OPTIONS" }],
    ["an address of another kind", { url: "ftp://example.com/" }],
    ["credentials in the address", { url: "https://user:secret@example.com/" }],
    ["no address", { url: "" }],
    ["json and body", { json: 1, body: "1" }],
    ["a stream", { body: new ReadableStream() as never }],
    ["form data", { body: new FormData() as never }],
    ["credentials", { headers: { Authorization: "secret" } }],
    ["cookies", { headers: { cookie: "secret" } }],
    ["a proxy's credentials", { headers: { "Proxy-Authorization": "secret" } }],
    ["an API key", { headers: { "X-API-Key": "secret" } }],
    ["a token", { headers: { "X-Auth-Token": "secret" } }],
    ["the key's own header", { headers: { "idempotency-key": "secret" } }],
    ["a header of the connection", { headers: { "Transfer-Encoding": "chunked" } }],
    ["a length", { headers: { "content-length": "3" } }],
    ["a header that none can be", { headers: { "x-a": "secret\n" + "x" } }],
    ["NaN", { json: { a: Number.NaN } }],
    ["infinity", { json: [Number.POSITIVE_INFINITY] }],
    ["an invalid date", { json: { at: new Date("x") } }],
    ["a forgotten await", { json: { a: Promise.resolve(1) } }],
    ["a Map", { json: new Map([["a", 1]]) }],
    ["bytes in JSON", { json: { a: new Uint8Array(3) } }],
    ["a function", { json: () => 1 }],
  ];
  it.each(wrong)("is refused, and nothing kept or shown, for %s", async (_, request) => {
    const storage = memoryStorage();
    const error: unknown = await createClient({ storage })
      .submit("cart-1", { url, ...request })
      .catch((raised: unknown) => raised);
    expect(error).toEqual(refused);
    expect(String(error)).not.toContain("secret");
    expect(String(error)).toContain("Nothing was kept or sent.");
    expect(await storage.list()).toEqual([]);
  });

  it("is refused where it refers to itself", async () => {
    const cycle: { self?: unknown } = {};
    cycle.self = cycle;
    await expect(kept({ url, json: cycle })).rejects.toEqual(refused);
  });

  it("needs a name", async () => {
    const client = createClient({ storage: memoryStorage() });
    await expect(client.submit("", { url })).rejects.toEqual(refused);
  });
});

describe("JSON text", () => {
  it("is what the server would write of the same value", () => {
    const values = fc.jsonValue({ noUnicodeString: false }).chain((value) => fc.tuple(fc.constant(value), fc.bigInt()));
    fc.assert(
      fc.property(values, ([value, big]) => {
        expect(jsonText({ value, big })).toBe(stringifyJson({ value, big }));
      }),
    );
  });

  it("keeps toJSON, dates, and digits where somebody gave BigInt a toJSON", () => {
    Object.defineProperty(BigInt.prototype, "toJSON", { value: () => "lost", configurable: true });
    try {
      expect(jsonText([9007199254740993n, new Date(0), { toJSON: () => 7 }, undefined])).toBe(
        '[9007199254740993,"1970-01-01T00:00:00.000Z",7,null]',
      );
    } finally {
      delete (BigInt.prototype as { toJSON?: unknown }).toJSON;
    }
  });
});

describe("base64", () => {
  it("is Node's, both ways, for a megabyte too", () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 300 }), (bytes) => {
        expect(toBase64(bytes)).toBe(Buffer.from(bytes).toString("base64"));
        expect([...fromBase64(toBase64(bytes))]).toEqual([...bytes]);
      }),
    );
    const megabyte = Buffer.alloc(2 ** 20, "ü");
    expect(toBase64(megabyte)).toBe(megabyte.toString("base64"));
  });
});
