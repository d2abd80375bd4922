import { isToken, referenceParameters } from "./reference-header.ts";
import { utf8Text } from "./reference-json.ts";

/** A part as the reference reads it. */
export interface ReferencePart {
  readonly name: string;
  readonly filename: string | null;
  readonly bytes: string;
}

/**
 * The parts of a `multipart/form-data` body (RFC 2046 §5.1.1, RFC 7578), found line by line in Latin-1 text; `undefined`:
 * it is malformed, or can be read in two ways.
 */
export function referenceMultipart(body: Uint8Array, boundary: string): ReferencePart[] | undefined {
  const lines = Buffer.from(body).toString("latin1").split("\r\n");
  const opens = (line: string | undefined) => line?.startsWith(`--${boundary}`) ?? false;
  const parts: ReferencePart[] = [];
  let at = lines.findIndex(opens);
  for (;;) {
    const line = lines[at];
    if (at === -1 || line === undefined) return undefined;
    const rest = line.slice(boundary.length + 2);
    if (rest.startsWith("--")) return parts;
    if (/[^ \t]/.test(rest) || at === lines.length - 1) return undefined;
    // The line behind a delimiter belongs to the part, whatever it looks like: its line break is the delimiter's.
    const next = lines.findIndex((one, index) => index > at + 1 && opens(one));
    if (next === -1) return undefined;
    const part = partOf(lines.slice(at + 1, next));
    if (part === undefined) return undefined;
    parts.push(part);
    at = next;
  }
}

function partOf(lines: readonly string[]): ReferencePart | undefined {
  const blank = lines.indexOf("");
  // The header ends with a line break of its own and an empty line of its own: neither is the delimiter's.
  if (blank < 1 || blank === lines.length - 1) return undefined;
  const headers = new Map<string, string>();
  for (const line of lines.slice(0, blank)) {
    const text = utf8Text(Buffer.from(line, "latin1"));
    const colon = text?.indexOf(":") ?? -1;
    if (text === undefined || colon < 1 || !isToken(text.slice(0, colon)) || /[\r\n]/.test(text)) return undefined;
    const name = text.slice(0, colon).toLowerCase();
    if (headers.has(name)) return undefined;
    headers.set(
      name,
      text
        .slice(colon + 1)
        .replace(/^[ \t]+/, "")
        .trimEnd(),
    );
  }
  return described(headers, lines.slice(blank + 1).join("\r\n"));
}

function described(headers: ReadonlyMap<string, string>, bytes: string): ReferencePart | undefined {
  const encoding = headers.get("content-transfer-encoding")?.toLowerCase() ?? "binary";
  if (!["7bit", "8bit", "binary"].includes(encoding)) return undefined;
  const disposition = referenceParameters(headers.get("content-disposition") ?? "", (quoted) =>
    quoted.split('\\"').join('"').split("%22").join('"'),
  );
  const values = new Map(disposition?.parameters);
  const name = values.get("name");
  const filename = values.get("filename") ?? null;
  if (disposition?.value.toLowerCase() !== "form-data" || name === undefined || values.has("filename*"))
    return undefined;
  if (`${name}${filename ?? ""}`.includes("\0") || !isTyped(headers.get("content-type"))) return undefined;
  return { name, filename, bytes };
}

function isTyped(type: string | undefined): boolean {
  if (type === undefined) return true;
  const [first = "", second = "", ...more] = referenceParameters(type)?.value.split("/") ?? [];
  return more.length === 0 && isToken(first) && isToken(second);
}
