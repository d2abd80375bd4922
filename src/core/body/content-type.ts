import { refuseCoding } from "./invalid.ts";
import { parseParameters } from "./parameters.ts";

/** How a body is read; `none`: the request has no body at all, which differs from an empty value. */
export type BodyKind = "none" | "json" | "form" | "multipart" | "raw";

/** A parsed `Content-Type`: type and parameter names in lower case, charset's value too (RFC 9110 §8.3). */
export interface MediaType {
  readonly type: string;
  readonly parameters: ReadonlyMap<string, string>;
}

const TYPE = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+\/[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;

const PLAIN_JSON: MediaType = { type: "application/json", parameters: new Map() };

/**
 * Parses a `Content-Type` value; `null` where the header is absent. Raises `idempotency_request_unsupported` for a
 * malformed one, which is also what two joined header lines look like.
 */
export function parseContentType(value: string | null): MediaType | null {
  if (value === null) return null;
  // What nearly every request says, several times a request.
  if (value === PLAIN_JSON.type) return PLAIN_JSON;
  const parsed = parseParameters(value);
  if (parsed === null || !TYPE.test(parsed.value)) return refuseCoding("The Content-Type header is malformed");
  const parameters = new Map(parsed.parameters);
  const charset = parameters.get("charset");
  if (charset !== undefined) parameters.set("charset", charset.toLowerCase());
  return { type: parsed.value.toLowerCase(), parameters };
}

/**
 * How a body of this type is read. JSON: `application/json`, `text/json`, any `+json` (RFC 6839 §3.1), and what AWS's JSON
 * protocols call `application/x-amz-json-1.0` and `-1.1`. Without a type,
 * or with any other (multipart types but form-data included), the bytes stand for themselves.
 */
export function bodyKindOf(media: MediaType | null): Exclude<BodyKind, "none"> {
  if (media === null) return "raw";
  const { type } = media;
  if (type === "application/json" || type === "text/json" || type.endsWith("+json")) return "json";
  if (/^application\/x-amz-json-1\.[01]$/.test(type)) return "json";
  if (type === "application/x-www-form-urlencoded") return "form";
  return type === "multipart/form-data" ? "multipart" : "raw";
}

/** Raises `idempotency_request_unsupported` for text in another charset than UTF-8. */
export function checkCharset(media: MediaType | null): void {
  const charset = media?.parameters.get("charset") ?? "utf-8";
  if (charset !== "utf-8" && charset !== "utf8") refuseCoding("The body's charset is not supported, only UTF-8 is");
}

const IGNORED: Readonly<Record<Exclude<BodyKind, "none">, readonly string[]>> = {
  json: ["charset"],
  form: ["charset"],
  multipart: ["charset", "boundary"],
  raw: [],
};

/**
 * The media type as it takes part in comparisons: parameters sorted, without those that do not change what a body of the
 * kind means (charset where only UTF-8 is read, the boundary, which is random per attempt). The type itself stays in: it
 * may select a version (`application/vnd.api.v2+json`).
 */
export function comparedType(media: MediaType | null, kind: Exclude<BodyKind, "none">): string | null {
  if (media === null) return null;
  if (media.parameters.size === 0) return media.type;
  const parameters = [...media.parameters].filter(([name]) => !IGNORED[kind].includes(name));
  parameters.sort(([a], [b]) => (a < b ? -1 : 1));
  return [media.type, ...parameters.map(([name, value]) => `;${name}=${JSON.stringify(value)}`)].join("");
}
