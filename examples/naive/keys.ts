import type { IncomingMessage } from "node:http";
import type { Naivety } from "./naiveties.ts";

/** What became of the key of a request. */
export type ReadKey =
  | { readonly kind: "key"; readonly key: string }
  | { readonly kind: "none" }
  | { readonly kind: "invalid"; readonly why: string };

/** Whether a fault is planted. */
export type Planted = (naivety: Naivety) => boolean;

/** The key of a request: a quoted string or a bare word of printable ASCII, in exactly one header line. */
export function readKey(request: IncomingMessage, has: Planted): ReadKey {
  if (has("ignores-keys")) return { kind: "none" };
  const lines = request.headersDistinct["idempotency-key"] ?? [];
  if (lines.length > 1 && !has("joins-lines")) return { kind: "invalid", why: "more than one line" };
  const [first] = lines;
  if (first === undefined) return has("shares-no-key") ? { kind: "key", key: "undefined" } : { kind: "none" };
  return readText(unquoted(lines.join(", "), has), has);
}

function unquoted(text: string, has: Planted): string {
  return has("quotes-matter") ? text : (/^"(.*)"$/s.exec(text)?.[1] ?? text);
}

function readText(given: string, has: Planted): ReadKey {
  if (given === "" || given === '""')
    return has("empty-is-none") ? { kind: "none" } : { kind: "invalid", why: "empty" };
  const cut = has("cuts-keys") ? given.slice(0, 64) : given;
  const text = has("folds-characters") ? cut.replace(/[^\x20-\x7e]+/g, "?") : cut;
  if (text.length > (has("caps-keys") ? 200 : 255)) return { kind: "invalid", why: "too long" };
  if (!has("takes-any-character") && !/^[\x20-\x7e]+$/.test(text)) return { kind: "invalid", why: "not ASCII" };
  const takesLists = has("takes-lists") || has("joins-lines");
  return text.includes(",") && !takesLists ? { kind: "invalid", why: "a list" } : { kind: "key", key: text };
}
