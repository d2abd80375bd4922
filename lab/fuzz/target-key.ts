import fc from "fast-check";
import { type ParsedKey, parseKey } from "../../src/core/key.ts";
import { MARKER, must, mustEqual } from "./finding.ts";
import { referenceString, trimmed } from "./reference-header.ts";
import { bytesOfAll, type FuzzTarget, numbered, propertyOf, repeated, type Verdict } from "./target.ts";
import { inputOf, readVectors } from "./vectors.ts";

/** Node gives header bytes as Latin-1. Lines are told apart by a line feed, which no header value holds. */
const linesOf = (input: Uint8Array) => Buffer.from(input).toString("latin1").split("\n");
const MAX_LENGTH = 255;

/** The key's header: all of its lines, bare or as a structured-field string. */
export const keyTarget: FuzzTarget = {
  name: "key",
  about: "the key's header lines, against RFC 9651 read character by character",
  seeds: [
    ...readVectors("structured-strings").map(inputOf),
    ...bytesOfAll(["8e03978e-40d5", `"${MARKER}"`, '"a"\n"a"', "a,b", '"a", "b"', " k ", "k".repeat(256)]),
  ],
  words: [
    '"',
    "\\",
    '\\"',
    "\\\\",
    ",",
    ";a=1",
    "\n",
    "\t",
    " ",
    MARKER,
    "k".repeat(64),
    "\x7f",
    "\xe9",
    "?1",
    ":YQ==:",
  ],
  run: (input) => parseKey(linesOf(input)),
  try: tryKey,
  properties: [
    propertyOf(
      "quoted and bare are one key, and each key comes back as it was sent",
      fc.property(fc.string({ unit: "binary-ascii", maxLength: 40 }), (text) => {
        const quoted = `"${text.replace(/["\\]/g, "\\$&")}"`;
        const found = parseKey([quoted]);
        if (found.kind === "key") mustEqual(found.key, text, "the key");
        else must(/[^ -~]|,/.test(text) || text.trim() === "", "a printable key is refused");
        const bare = parseKey([text]);
        if (bare.kind === "key" && !text.includes('"')) mustEqual(bare.key, trimmed(text), "the bare key");
      }),
    ),
  ],
  families: [
    repeated("backslashes", '"', "\\\\"),
    repeated("escaped quotes", '"', '\\"', '"'),
    repeated("spaces before a key", "", " ", "k"),
    repeated("spaces behind a key", "k", " ", "k"),
    repeated("commas", "", ","),
    repeated("visible characters", "", "k"),
    repeated("quotes", "", '"'),
    numbered("lines", "", (at) => `"${at}"\n`),
  ],
};

function tryKey(input: Uint8Array): Verdict {
  const lines = linesOf(input);
  const found = parseKey(lines);
  const expected = referenceKey(lines);
  must(found.kind === expected.kind, `${found.kind} in place of ${expected.kind}`);
  if (found.kind === "key") mustEqual(found.key, expected.kind === "key" ? expected.key : "", "the key");
  if (found.kind === "invalid") must(!found.why.includes("zq9s"), "a refusal repeats what was sent");
  return found.kind === "key" ? "accepted" : "refused";
}

function referenceKey([line = "", ...others]: readonly string[]): ParsedKey {
  const refused: ParsedKey = { kind: "invalid", why: "" };
  const value = trimmed(line);
  const key = value.startsWith('"') ? referenceString(value) : bareKey(value);
  const isKept = key !== undefined && [...key].some((char) => char !== " ") && ![...key].includes(",");
  return others.length === 0 && isKept && key.length <= MAX_LENGTH ? { kind: "key", key } : refused;
}

function bareKey(value: string): string | undefined {
  return [...value].every((char) => char > " " && char <= "~" && char !== '"' && char !== "\\") ? value : undefined;
}
