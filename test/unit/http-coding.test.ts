import { brotliCompressSync, deflateRawSync, deflateSync, gzipSync } from "node:zlib";
import { describe, expect, it } from "vitest";
import { codingNames, decodeContent } from "../../src/http/coding.ts";

const TEXT = Buffer.from('{"amount":1}');
const LIMIT = 1_000;

describe("decodeContent", () => {
  it("undoes gzip, deflate and br, whatever the case of their names", async () => {
    const rows = { GZIP: gzipSync, "x-gzip": gzipSync, deflate: deflateSync, br: brotliCompressSync };
    for (const [coding, encode] of Object.entries(rows)) {
      const decoded = await decodeContent(coding, encode(TEXT), LIMIT);
      expect(decoded).toEqual({ kind: "bytes", bytes: TEXT });
    }
  });

  it("leaves bytes alone where there is no coding", async () => {
    for (const coding of [null, "", "identity", " identity , "]) {
      expect(await decodeContent(coding, TEXT, LIMIT)).toEqual({ kind: "bytes", bytes: TEXT });
    }
    expect(await decodeContent(null, TEXT, TEXT.length - 1)).toEqual({ kind: "too_large" });
  });

  it("does not know other codings, several at once, or names of an object's own members", async () => {
    for (const coding of ["compress", "zstd", "gzip, br", "constructor", "__proto__", "toString"]) {
      expect(await decodeContent(coding, gzipSync(TEXT), LIMIT)).toEqual({ kind: "unsupported" });
    }
  });

  it("stops at the limit exactly", async () => {
    const at = await decodeContent("gzip", gzipSync(Buffer.alloc(LIMIT, "ab")), LIMIT);
    expect(at.kind).toBe("bytes");
    expect(await decodeContent("gzip", gzipSync(Buffer.alloc(LIMIT + 1, "ab")), LIMIT)).toEqual({ kind: "too_large" });
  });

  it("stops where a few bytes unfold to far more, below the limit too", async () => {
    const bomb = gzipSync(Buffer.alloc(900_000));
    expect(await decodeContent("gzip", bomb, 1_000_000)).toEqual({ kind: "too_large" });
    expect((await decodeContent("gzip", gzipSync(Buffer.alloc(60_000)), 1_000_000)).kind).toBe("bytes");
  });

  it("tells malformed bytes", async () => {
    expect(await decodeContent("gzip", TEXT, LIMIT)).toEqual({ kind: "malformed" });
    expect(await decodeContent("gzip", gzipSync(TEXT).subarray(0, 15), LIMIT)).toEqual({ kind: "malformed" });
    expect(await decodeContent("deflate", deflateRawSync(TEXT), LIMIT)).toEqual({ kind: "malformed" });
  });
});

describe("codingNames", () => {
  it("gives what is in effect", () => {
    expect(codingNames("identity, GZIP , br")).toEqual(["gzip", "br"]);
    expect(codingNames(null)).toEqual([]);
  });
});
