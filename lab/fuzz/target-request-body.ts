import { deflateSync, gzipSync } from "node:zlib";
import { readRequestBody } from "../../src/core/body/read.ts";
import { type BodyRules, readExchangeBody } from "../../src/http/body.ts";
import { laterOutcomeOf, MARKER, must, mustEqual } from "./finding.ts";
import { exchangeOf } from "./made-exchange.ts";
import { bytesOfAll, type Family, type FuzzTarget, repeated, type Verdict } from "./target.ts";

const REFUSES = ["idempotency_request_invalid", "idempotency_request_unsupported", "idempotency_request_too_large"];
const RULES: BodyRules = {
  ...{ limitBytes: 65_536, accepts: ["json", "form", "multipart", "raw"], fractions: "exact" },
  ...{ ordinaryNumbers: true, allowUnsafeNumbers: false },
};
const MULTIPART = `multipart/form-data; boundary=XX\n\n--XX\r\nContent-Disposition: form-data; name="a"\r\n\r\n1\r\n--XX--`;

/** Whole requests bodies: content type and coding on the first two lines, then the bytes. */
export const requestBodyTarget: FuzzTarget = {
  name: "request-body",
  about: "bodies of any type in any content coding: read within their limits, or refused before any claim",
  seeds: [
    ...bytesOfAll([
      'application/json\n\n{"a":1}',
      `application/json\n\n{"${MARKER}":9007199254740993}`,
      `application/json\n\n{"${MARKER}":0.1000000000000000055}`,
      `application/json\n\n["${MARKER}",nul]`,
      `application/x-www-form-urlencoded\n\n${MARKER}=1&${MARKER}[a]=2`,
      MULTIPART,
      "text/plain; charset=latin1\nidentity, gzip\nx",
      "\n\n",
    ]),
    ...[
      ["gzip", gzipSync('{"a":1}')] as const,
      ["x-gzip", gzipSync(Buffer.alloc(300_000))] as const,
      ["deflate", deflateSync("[1,2]")] as const,
    ].map(([coding, bytes]) => Buffer.concat([Buffer.from(`application/json\n${coding}\n`), bytes])),
  ],
  words: [
    "application/json",
    "gzip",
    "br",
    "deflate",
    "identity",
    ",",
    "\n",
    MARKER,
    '{"a":',
    "9007199254740993",
    "[",
    "]",
    "\x1f\x8b",
    "\0",
  ],
  run: (input) => readRequestBody("application/json", input),
  try: tryBody,
  properties: [],
  families: [
    repeated("spaces in a body", "", " ", "1"),
    repeated("deep objects to the limit", "[", `${'{"a":'.repeat(50)}1${"}".repeat(50)},`, "1]"),
    gzipped(),
  ],
};

async function tryBody(input: Uint8Array): Promise<Verdict> {
  const [type = "", coding = ""] = Buffer.from(input).toString("latin1").split("\n");
  const bytes = input.subarray(Math.min(input.length, type.length + coding.length + 2));
  const headers = {
    ...(type === "" ? {} : { "content-type": [type] }),
    ...(coding === "" ? {} : { "content-encoding": [coding] }),
  };
  const read = await laterOutcomeOf(REFUSES, () => readExchangeBody(exchangeOf(headers, { body: bytes }), RULES));
  if (read.kind === "refused") return "refused";
  const { form, bytes: decoded } = read.value;
  must(decoded !== null && decoded.length <= RULES.limitBytes, "a body beyond its limit");
  if (bytes.length === 0) must(form.kind === "none", "a body that is not there");
  const again = readRequestBody(type === "" ? null : type, decoded);
  mustEqual(Buffer.from(again.canonical()), Buffer.from(form.canonical()), "the canonical form without its coding");
  const value = await laterOutcomeOf(REFUSES, async () => form.value());
  return value.kind === "value" ? "accepted" : "refused";
}

// Made before its time is taken; what is measured is reading what it unfolds to.
function gzipped(): Family {
  return { name: "elements", make: (size) => Buffer.from(`[${"[],".repeat(size / 3)}1]`) };
}
