import { describe, expect, it } from "vitest";
import { requestId, traceParent, usableCorrelation } from "../../src/core/correlation.ts";
import { codes, isClientError, OncekeyError } from "../../src/core/errors.ts";
import { messageId } from "../../src/core/message.ts";
import { deliveryReference, entryReference, numberedDigest } from "../../src/core/reference.ts";

const hex = (bytes: Uint8Array) => Buffer.from(bytes).toString("hex");
const filled = (length: number, byte: number) => new Uint8Array(length).fill(byte);

describe("what applications and receivers know a piece of work by", () => {
  it("is frozen: computed once by other code", () => {
    const entry = { id: filled(32, 7), seed: filled(16, 5), fingerprint: Uint8Array.of(1, 2, 3) };
    expect(messageId(entry, "charged", 2)).toBe("0m2eVExx2T74BBR13QYzT66fFKlS0zsT9us_tiRqVtg");
    expect(entryReference(entry)).toBe("pVcepr0S1hPr8xzYtGcNhg9TNsP4VxLGL6e1WgUjs8U");
    expect(deliveryReference(Uint8Array.of(0xfb, 0xff))).toBe("-_8");
    const numbered = { tenant: "acme", source: "meter", producer: "edge-7", epoch: 1n, sequence: 42n };
    expect(hex(numberedDigest(numbered))).toBe("52cd668f37f8d2fc59820765d9187459259f3e6191b6cfa05485c78a1b1b60b8");
  });

  it("differs for each message of an entry, and after a purge", () => {
    const entry = { id: filled(32, 7), seed: filled(16, 5) };
    const ids = [
      messageId(entry, "charged", 0),
      messageId(entry, "charged", 1),
      messageId(entry, "settled", 0),
      messageId({ ...entry, seed: filled(16, 6) }, "charged", 0),
      messageId({ ...entry, id: filled(32, 8) }, "charged", 0),
    ];
    expect(new Set(ids).size).toBe(ids.length);
  });

  it("differs for each producer, epoch and number", () => {
    const numbered = { tenant: "acme", source: "meter", producer: "edge-7", epoch: 1n, sequence: 11n };
    const all = [
      numbered,
      { ...numbered, epoch: 11n, sequence: 1n },
      { ...numbered, epoch: 2n },
      { ...numbered, sequence: 12n },
      { ...numbered, producer: "edge-8" },
    ].map((one) => hex(numberedDigest(one)));
    expect(new Set(all).size).toBe(all.length);
  });
});

describe("what ties work to its caller's logs", () => {
  const TRACE = "0af7651916cd43dd8448eb211c80319c";
  const PARENT = "b7ad6b7169203331";

  it("is text that a header carries, and nothing else", () => {
    for (const good of ["!", "~", "a".repeat(255)]) expect(usableCorrelation(good)).toBe(good);
    for (const bad of ["", " a", "a b", "a\n", "é", "\x7f", "a".repeat(256), 7, null, undefined, ["a"]]) {
      expect(usableCorrelation(bad)).toBeNull();
    }
  });

  it("is a traceparent of version 00 as it came", () => {
    for (const flags of ["00", "01", "ff"]) {
      const line = `00-${TRACE}-${PARENT}-${flags}`;
      expect(traceParent([line])).toBe(line);
      expect(traceParent([` ${line}\t`])).toBe(line);
    }
  });

  it("is one of a later version by its known fields: of the flags, only whether it is sampled", () => {
    for (const [flags, told] of Object.entries({
      "00": "00",
      "01": "01",
      "02": "00",
      ff: "01",
      fe: "00",
      "10": "00",
    })) {
      expect(traceParent([`01-${TRACE}-${PARENT}-${flags}`])).toBe(`00-${TRACE}-${PARENT}-${told}`);
      expect(traceParent([`fe-${TRACE}-${PARENT}-${flags}-more-of-it`])).toBe(`00-${TRACE}-${PARENT}-${told}`);
    }
  });

  it("is no traceparent that is absent, repeated or malformed", () => {
    const line = `00-${TRACE}-${PARENT}-01`;
    expect(traceParent([])).toBeNull();
    expect(traceParent([line, line])).toBeNull();
    const malformed = [
      ...["", "00", `${line}-`, `${line}-more`, `${line}0`, `0${line}`, `x${line}`, line.toUpperCase()],
      ...[`ff-${TRACE}-${PARENT}-01`, `0g-${TRACE}-${PARENT}-01`, `00-${TRACE}-${PARENT}-0g`, `00-${TRACE}-${PARENT}`],
      ...[`00-${"0".repeat(32)}-${PARENT}-01`, `00-${TRACE}-${"0".repeat(16)}-01`, `00${TRACE}${PARENT}01`],
      ...[`00-${TRACE.slice(1)}-${PARENT}-01`, `00-${TRACE}-${PARENT}0-01`, `01-${TRACE}-${PARENT}-01more`],
    ];
    for (const one of malformed) expect(traceParent([one]), one).toBeNull();
    const nearlyZero = `00-${"0".repeat(31)}1-${"0".repeat(15)}1-00`;
    expect(traceParent([nearlyZero])).toBe(nearlyZero);
  });

  it("is else a request id of 1 to 200 visible characters, sent once", () => {
    for (const good of ["!", "~", "a".repeat(200)]) {
      expect(requestId([good])).toBe(good);
      expect(requestId([` ${good} `])).toBe(good);
    }
    for (const lines of [[], [""], ["a", "a"], ["a b"], ["a".repeat(201)], ["é"], ["a\nb"]]) {
      expect(requestId(lines)).toBeNull();
    }
  });
});

describe("an error", () => {
  it("has its code, its cause where there is one, and when to come back", () => {
    const cause = new Error("cut");
    const error = new OncekeyError("idempotency_store_unavailable", "m", { cause, retryAfterMs: 5 });
    expect([error.name, error.code, error.message, error.cause, error.retryAfterMs]).toEqual([
      "OncekeyError",
      "idempotency_store_unavailable",
      "m",
      cause,
      5,
    ]);
    const plain = new OncekeyError("oncekey_closed", "m");
    expect("cause" in plain).toBe(false);
    expect(plain.retryAfterMs).toBeUndefined();
    expect("cause" in new OncekeyError("oncekey_closed", "m", { cause: null })).toBe(true);
  });

  it("is shown to a client only where the table says so", () => {
    for (const [code, { audience }] of Object.entries(codes)) {
      const error = new OncekeyError(code as keyof typeof codes, "m");
      expect(isClientError(error), code).toBe(audience === "client");
      expect(code.startsWith(audience === "client" ? "idempotency_" : "oncekey_"), code).toBe(true);
    }
    for (const other of [null, undefined, new Error("m"), { code: "idempotency_closing" }]) {
      expect(isClientError(other)).toBe(false);
    }
  });
});
