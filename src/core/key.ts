import { createHash } from "node:crypto";

/** What the key header of a request gave. `why` says what is wrong without showing the key. */
export type ParsedKey =
  | { readonly kind: "key"; readonly key: string }
  | { readonly kind: "missing" }
  | { readonly kind: "invalid"; readonly why: string };

/** Longest key by default, in characters after unquoting. */
const MAX_KEY_LENGTH = 255;

const VISIBLE = /^[\x21-\x7e]+$/;
const QUOTED = /^"((?:[\x20\x21\x23-\x5b\x5d-\x7e]|\\["\\])*)"$/;

/**
 * Reads the key from all lines of its header. A structured-field string (`"k"`, RFC 9651 §3.3.3) and the bare form (`k`)
 * are the same key: quoting is syntax, and a proxy or SDK that changes it must not run the operation again. Exactly one
 * line: runtimes that join lines with a comma would turn two keys into a third one, so a comma is refused as well. An
 * empty value is malformed, never "unprotected".
 */
export function parseKey(lines: readonly string[], options: { readonly maxLength?: number } = {}): ParsedKey {
  const [line, ...others] = lines;
  if (line === undefined) return { kind: "missing" };
  if (others.length > 0) return invalid("it was sent more than once");
  const value = trimSpace(line);
  const key = value.startsWith('"') ? unquote(value) : bare(value);
  if (typeof key !== "string") return key;
  if (key.trim() === "") return invalid("it is empty");
  if (key.includes(",")) return invalid("it holds a comma, which would be mistaken for two keys");
  const maxLength = options.maxLength ?? MAX_KEY_LENGTH;
  if (key.length > maxLength) return invalid(`it is longer than ${maxLength} characters`);
  return { kind: "key", key };
}

function invalid(why: string): ParsedKey & { kind: "invalid" } {
  return { kind: "invalid", why };
}

// RFC 9110 §5.6.3: optional whitespace around a value is space and tab, nothing else.
function trimSpace(line: string): string {
  let start = 0;
  let end = line.length;
  while (isBlank(line[start])) start++;
  while (isBlank(line[end - 1])) end--;
  return line.slice(start, end);
}

const isBlank = (char: string | undefined): boolean => char === " " || char === "\t";

function unquote(value: string): string | ReturnType<typeof invalid> {
  const inner = QUOTED.exec(value)?.[1];
  if (inner === undefined) {
    return invalid("it begins with a quote but is not one quoted string of printable ASCII without parameters");
  }
  return inner.replace(/\\(.)/g, "$1");
}

function bare(value: string): string | ReturnType<typeof invalid> {
  if (value === "") return value;
  if (!VISIBLE.test(value)) return invalid("it holds a space, a control character or a character outside ASCII");
  return /["\\]/.test(value) ? invalid("it holds a quote or a backslash outside a quoted string") : value;
}

/** How keys are kept: as they are, or (where they may hold personal data) as a digest with a short prefix. */
export type KeyStorage = "raw" | "digest";

const PREFIX_LENGTH = 6;

/**
 * The key as it is stored and shown to operators. A digest is `prefix…sha256:hex`; the prefix is at most half of the key.
 * No raw key can look like it: "…" is outside ASCII. The identity is computed from the raw key either way.
 */
export function storedKey(key: string, how: KeyStorage): string {
  if (how === "raw") return key;
  const prefix = key.slice(0, Math.min(PREFIX_LENGTH, Math.floor(key.length / 2)));
  return `${prefix}…sha256:${createHash("sha256").update(key).digest("hex")}`;
}

/** A short digest (16 hexadecimal digits) that names a key in logs, where the key itself must never stand. */
export function keyDigest(key: string): string {
  return createHash("sha256").update(key).digest("hex").slice(0, 16);
}
