import fc from "fast-check";
import { canonicalPath } from "../../src/core/request-form.ts";
import { splitTarget } from "../../src/http/target.ts";
import { MARKER, must, mustEqual, outcomeOf } from "./finding.ts";
import { referencePairs } from "./reference-form.ts";
import { bytesOfAll, type FuzzTarget, propertyOf, repeated, type Verdict } from "./target.ts";

const REFUSES = ["idempotency_request_invalid"];
const textOf = (input: Uint8Array) => Buffer.from(input).toString("latin1");

/** Request targets: path, query, and the path's normal form. */
export const httpTargetTarget: FuzzTarget = {
  name: "http-target",
  about: "request targets and paths, against a reader that goes character by character",
  seeds: bytesOfAll([
    ...["/", "", "*", "/a/b?x=1&y", "/a%2Fb%7e?", "?a=1", "/a?b?c#d?e", "#a?b", "//a//b", "/a:b@c"],
    ...[
      "http://h",
      "http://h?a=1",
      "HTTP://user@h:80/p?q#f",
      "a+b.c-d://x/y",
      "/http://x/y",
      "1http://x",
      `/${MARKER}%?${MARKER}=%`,
    ],
  ]),
  words: ["/", "?", "#", "%", "%2F", "%7E", "%25", "://", "http://", ":", "@", "&", "=", "..", "%C3%A9", "%zz", MARKER],
  run(input) {
    const { path, pairs } = splitTarget(textOf(input));
    return [canonicalPath(path), pairs];
  },
  try: tryTarget,
  properties: [
    propertyOf(
      "the path of an absolute target is the one that URL gives",
      fc.property(fc.webUrl({ withQueryParameters: true, withFragments: true }), (given) => {
        const { pathname } = new URL(given);
        const [, afterHost = ""] = /^https?:\/\/[^/?#]*(.*)$/s.exec(given) ?? [];
        // URL resolves dot segments; here they are data.
        if (/(^|\/)(\.|%2e){1,2}(\/|$|\?|#)/i.test(afterHost)) return;
        mustEqual(encodeURI(decodeURI(splitTarget(given).path)), encodeURI(decodeURI(pathname)), "the path");
      }),
    ),
    propertyOf(
      "a needless percent-encoding makes no other path, a needed one does",
      fc.property(fc.string({ unit: fc.constantFrom(..."abz09-._~/%?@!"), maxLength: 8 }), fc.nat(), (path, at) => {
        const encoded = encodeURIComponent(path).replaceAll("%2F", "/");
        const place = at % Math.max(1, encoded.length);
        const char = encoded[place] ?? "";
        if (!/[a-z0-9\-._~]/i.test(char) || encoded.slice(Math.max(0, place - 2), place).includes("%")) return;
        const needless = `%${char.charCodeAt(0).toString(16)}`;
        mustEqual(
          canonicalPath(encoded.slice(0, place) + needless + encoded.slice(place + 1)),
          canonicalPath(encoded),
          "the path",
        );
        must(canonicalPath("/a%2fb") !== canonicalPath("/a/b"), "an encoded slash is a slash");
      }),
    ),
  ],
  families: [
    repeated("hashes", "/", "#"),
    repeated("question marks", "/", "?"),
    repeated("a scheme without an end", "", "a"),
    repeated("schemes", "", "a://"),
    repeated("percent signs", "/", "%25"),
    repeated("slashes", "", "/"),
    repeated("a host without an end", "a://", "b"),
  ],
};

function tryTarget(input: Uint8Array): Verdict {
  const text = textOf(input);
  const { path, query } = referenceTarget(text);
  // Node gives Latin-1, so a query is text beyond ASCII already.
  const pairs = query === null ? [] : referencePairs(Buffer.from(query));
  const outcome = outcomeOf(REFUSES, () => splitTarget(text));
  must((outcome.kind === "value") === (pairs !== undefined && pairs.length <= 1_000), `the target was ${outcome.kind}`);
  if (outcome.kind === "refused") return "refused";
  mustEqual(outcome.value.path, path, "the path");
  mustEqual(JSON.stringify(outcome.value.pairs), JSON.stringify(pairs), "the query");
  return tryPath(path);
}

function tryPath(path: string): Verdict {
  const outcome = outcomeOf(REFUSES, () => canonicalPath(path));
  const expected = referencePath(path);
  must((outcome.kind === "value") === (expected !== undefined), `the path was ${outcome.kind}`);
  if (outcome.kind === "refused") return "refused";
  mustEqual(outcome.value, expected ?? "", "the path's normal form");
  mustEqual(canonicalPath(outcome.value), outcome.value, "the normal form of itself");
  return "accepted";
}

function referenceTarget(text: string): { path: string; query: string | null } {
  const colon = text.indexOf("://");
  const scheme = text.slice(0, Math.max(0, colon));
  const isScheme = /[a-z]/i.test(scheme.charAt(0)) && [...scheme].every((char) => /[a-z0-9+.-]/i.test(char));
  let rest = isScheme ? text.slice(colon + 3) : text;
  if (isScheme) {
    const ends = ["/", "?", "#"].map((char) => rest.indexOf(char)).filter((at) => at >= 0);
    rest = rest.slice(Math.min(rest.length, ...ends));
  }
  const [target = ""] = rest.split("#");
  const [path = "", ...query] = target.split("?");
  return { path: path === "" ? "/" : path, query: query.length === 0 ? null : query.join("?") };
}

function referencePath(path: string): string | undefined {
  const [first = "", ...pieces] = path.split("%");
  const out = [first];
  for (const piece of pieces) {
    const code = /^[0-9a-f]{2}/i.test(piece) ? Number.parseInt(piece.slice(0, 2), 16) : -1;
    if (code === -1) return undefined;
    const char = String.fromCharCode(code);
    const isPlain = "-._~".includes(char) || (char < "\x80" && /[0-9a-z]/i.test(char));
    out.push(isPlain ? char : `%${piece.slice(0, 2).toUpperCase()}`, piece.slice(2));
  }
  return out.join("");
}
