import { createHash, createHmac } from "node:crypto";
import { describe, expect, it } from "vitest";
import { OncekeyError } from "../../src/core/errors.ts";
import {
  afterForgotten,
  comparedPart,
  type FingerprintForm,
  type FingerprintRing,
  type FingerprintSecret,
  fingerprintRing,
  matchRequest,
  type RequestProof,
  sameDigest,
  uncomparedContent,
} from "../../src/core/fingerprint.ts";
import { type FramedPart, frame } from "../../src/core/framing.ts";

const hex = (bytes: Uint8Array) => Buffer.from(bytes).toString("hex");
const OLD: FingerprintSecret = { id: 1, secret: "old secret" };
const NEW: FingerprintSecret = { id: 255, secret: new TextEncoder().encode("new secret") };
const PARTS: FramedPart[] = ["a", null, Uint8Array.of(1)];
const WIRE: FingerprintForm = { version: 1, compare: "wire", secretId: 0 };

describe("a fingerprint", () => {
  it("is frozen: version, comparison, id of the secret, and a digest over the comparison and the parts", () => {
    const bytes = { wire: "01", input: "02", none: "03" } as const;
    for (const compare of ["wire", "input", "none"] as const) {
      const framed = frame(1, [compare, ...PARTS]);
      const plain = createHash("sha256").update(framed).digest("hex");
      expect(hex(fingerprintRing().fingerprint({ ...WIRE, compare }, PARTS))).toBe(`01${bytes[compare]}00${plain}`);
      const keyed = createHmac("sha256", "new secret").update(framed).digest("hex");
      const form = { version: 1, compare, secretId: 255 };
      expect(hex(fingerprintRing([NEW]).fingerprint(form, PARTS))).toBe(`01${bytes[compare]}ff${keyed}`);
    }
  });

  it("is another one under each secret, and under none", () => {
    const ring = fingerprintRing([NEW, OLD]);
    const all = [0, 1, 255].map((secretId) => hex(ring.fingerprint({ ...WIRE, secretId }, PARTS).subarray(3)));
    expect(new Set(all).size).toBe(3);
  });
});

describe("a ring of secrets", () => {
  it("makes new fingerprints under its first secret, and locks under none: a rotation must not part two equal requests", () => {
    expect(fingerprintRing().form("input")).toEqual({ version: 1, compare: "input", secretId: 0 });
    const rotated = fingerprintRing([NEW, OLD]);
    expect(rotated.form("wire")).toEqual({ version: 1, compare: "wire", secretId: 255 });
    for (const ring of [fingerprintRing(), fingerprintRing([OLD]), rotated]) {
      expect(ring.lockForm("wire")).toEqual(WIRE);
      expect(ring.lockForm("none")).toEqual({ ...WIRE, compare: "none" });
    }
  });

  it("understands its own version under each of its secrets, and under none", () => {
    const ring = fingerprintRing([NEW, OLD]);
    for (const secretId of [0, 1, 255]) expect(ring.understands({ ...WIRE, secretId })).toBe(true);
    expect(ring.understands({ ...WIRE, secretId: 2 })).toBe(false);
    expect(ring.understands({ ...WIRE, version: 2 })).toBe(false);
    expect(ring.understands({ ...WIRE, version: 0 })).toBe(false);
  });

  it.each([
    ["the id of no secret", [{ id: 0, secret: "a" }]],
    ["an id below it", [{ id: -1, secret: "a" }]],
    ["an id above 255", [{ id: 256, secret: "a" }]],
    ["an id that is no whole number", [{ id: 1.5, secret: "a" }]],
    ["one id twice", [OLD, { id: 1, secret: "other" }]],
    ["no secret", [{ id: 1, secret: "" }]],
    ["no secret behind a good one", [OLD, { id: 2, secret: new Uint8Array() }]],
  ] as [string, FingerprintSecret[]][])("is refused with %s", (_, secrets) => {
    expect(() => fingerprintRing(secrets)).toThrow(expect.objectContaining({ code: "oncekey_config_invalid" }));
  });
});

/** A request with these parts, and how often its fingerprint was asked for. */
function request(parts: FramedPart[], over: Partial<RequestProof> = {}, ring: FingerprintRing = fingerprintRing()) {
  const asked: FingerprintForm[] = [];
  const proof: RequestProof = {
    compare: "wire",
    ring,
    wireDigest: null,
    async fingerprint(form) {
      asked.push(form);
      return ring.fingerprint(form, parts);
    },
    ...over,
  };
  return { proof, asked };
}

describe("a request beside a stored entry", () => {
  const ring = fingerprintRing([NEW, OLD]);
  const stored = (form: FingerprintForm, parts: FramedPart[] = PARTS) => ({
    fingerprint: ring.fingerprint(form, parts),
    wireDigest: null,
  });

  it("is compared under the form that the entry was made with, whatever new ones get", async () => {
    for (const form of [WIRE, { ...WIRE, secretId: 1 }, { ...WIRE, compare: "input", secretId: 255 } as const]) {
      const same = request(PARTS, {}, ring);
      expect(await matchRequest(stored(form), same.proof)).toBe("equal");
      expect(same.asked).toEqual([form]);
      expect(await matchRequest(stored(form), request(["b"], {}, ring).proof)).toBe("different");
    }
  });

  it("is equal at once where its exact bytes are, and not asked for more", async () => {
    const wireDigest = Uint8Array.of(1, 2, 3);
    const entry = { ...stored(WIRE), wireDigest };
    const same = request(["b"], { wireDigest: wireDigest.slice() });
    expect(await matchRequest(entry, same.proof)).toBe("equal");
    expect(same.asked).toEqual([]);
  });

  it("is compared in full where the bytes differ, or either side has none", async () => {
    const wireDigest = Uint8Array.of(1, 2, 3);
    const pairs = [
      [wireDigest, Uint8Array.of(1, 2, 4)],
      [wireDigest, Uint8Array.of(1, 2)],
      [wireDigest, null],
      [null, wireDigest],
      [null, null],
    ] as const;
    for (const [ours, theirs] of pairs) {
      const entry = { ...stored(WIRE), wireDigest: ours };
      expect(await matchRequest(entry, request(PARTS, { wireDigest: theirs }).proof)).toBe("equal");
      expect(await matchRequest(entry, request(["b"], { wireDigest: theirs }).proof)).toBe("different");
    }
  });

  it("is neither equal nor different where the entry's form is of newer code, or its secret is not here", async () => {
    const digest = new Uint8Array(32);
    const unknown = [[], [1], [1, 1], [1, 0, 0], [1, 4, 0], [2, 1, 0], [0, 1, 0], [1, 1, 9]];
    for (const head of unknown) {
      const entry = { fingerprint: Uint8Array.of(...head, ...(head.length === 3 ? digest : [])), wireDigest: null };
      const { proof, asked } = request(PARTS);
      expect(await matchRequest(entry, proof), head.join(" ")).toBe("version_unknown");
      expect(asked).toEqual([]);
    }
  });

  it("that cannot even be read is another request, and what else goes wrong is nobody's answer", async () => {
    const failing = (error: Error) =>
      matchRequest(stored(WIRE), request(PARTS, { fingerprint: () => Promise.reject(error) }).proof);
    expect(await failing(new OncekeyError("idempotency_request_invalid", "unreadable"))).toBe("different");
    for (const error of [new OncekeyError("oncekey_input_unstable", "unstable"), new Error("broken")]) {
      await expect(failing(error)).rejects.toBe(error);
    }
    const lookalike = Object.assign(new Error("not ours"), { code: "idempotency_request_invalid" });
    await expect(failing(lookalike)).rejects.toBe(lookalike);
  });

  it("is equal whatever tail either fingerprint has: only keys of outside calls depend on it", async () => {
    const seed = new Uint8Array(16).fill(5);
    const plain = stored(WIRE).fingerprint;
    const tailed = afterForgotten(plain, seed);
    expect(await matchRequest({ fingerprint: tailed, wireDigest: null }, request(PARTS).proof)).toBe("equal");
    const asked = request(PARTS, { fingerprint: async () => tailed }).proof;
    expect(await matchRequest({ fingerprint: plain, wireDigest: null }, asked)).toBe("equal");
  });
});

describe("the tail of a fingerprint", () => {
  const compared = fingerprintRing().fingerprint({ ...WIRE, compare: "none" }, ["operation"]);

  it("is the digest of the content where nothing is compared, and the seed after a forgotten failure", () => {
    const content = fingerprintRing().fingerprint(WIRE, PARTS);
    expect(hex(uncomparedContent(compared, content))).toBe(hex(compared) + hex(content.subarray(3)));
    const seed = Uint8Array.of(7, 8);
    expect(hex(afterForgotten(compared, seed))).toBe(`${hex(compared)}0708`);
  });

  it("is no part of what is compared", () => {
    expect(compared).toHaveLength(35);
    expect(hex(comparedPart(afterForgotten(compared, Uint8Array.of(9))))).toBe(hex(compared));
    expect(hex(comparedPart(compared))).toBe(hex(compared));
  });
});

it("digests are the same where all of their bytes are", () => {
  expect(sameDigest(Uint8Array.of(1, 2), Uint8Array.of(1, 2))).toBe(true);
  expect(sameDigest(Uint8Array.of(1, 2), Uint8Array.of(1, 3))).toBe(false);
  expect(sameDigest(Uint8Array.of(1, 2), Uint8Array.of(1))).toBe(false);
  expect(sameDigest(new Uint8Array(), Uint8Array.of(1))).toBe(false);
});
