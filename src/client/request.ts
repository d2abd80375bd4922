import { toBase64 } from "./bytes.ts";
import { refuse } from "./error.ts";
import { jsonText } from "./json-text.ts";
import { DERIVED, isDerived, keyFault } from "./key.ts";
import type { Settings } from "./settings.ts";
import type { StoredSubmission, SubmissionRequest } from "./submission.ts";

/** A request whose bytes are fixed, and the caller's own key where there is one. */
export interface FixedRequest {
  readonly request: StoredSubmission["request"];
  readonly key: string | undefined;
}

/**
 * Credentials change and must not lie in a storage; fields of the connection (RFC 9110 §7.6.1) are worked out by whatever
 * sends, and `fetch` raises for them at each attempt.
 */
const NOT_KEPT =
  /auth|cookie|api-?key|token|secret|^(connection|content-length|expect|keep-alive|transfer-encoding|upgrade)$/;

/** Fixes what will be sent with every attempt. Raises `oncekey_submission_invalid` where that cannot be. */
export async function fixRequest(given: SubmissionRequest, settings: Settings): Promise<FixedRequest> {
  const { key, method: said = "POST" } = given;
  const method = said.toUpperCase();
  if (/^(GET|HEAD|OPTIONS|TRACE|CONNECT)$/.test(method)) refuse("The method cannot be used");
  const url = absolute(given.url);
  const message = messageOf(given, settings);
  const bytes = new Uint8Array(await message.arrayBuffer());
  if (key !== undefined) {
    const fault = keyFault(key) ?? ((await isDerived(key, url, bytes)) ? DERIVED : null);
    if (fault) refuse(`The key ${fault}`);
  }
  // Headers are in the order of their names, which has no meaning, so that equal requests are equal.
  const { body, headers } = message;
  const { keyHeader } = settings;
  return { request: { method, url, headers: [...headers], bodyBase64: body && toBase64(bytes), keyHeader }, key };
}

function absolute(text: string): string {
  const { location } = globalThis as { readonly location?: { readonly href: string } };
  try {
    const url = new URL(text, location?.href);
    url.hash = "";
    // No credentials: they would be kept, and fetch refuses them.
    if (/^https?:$/.test(url.protocol) && !url.username && !url.password) return url.href;
  } catch {
    // The message shows the address.
  }
  return refuse("The url must be http(s), and absolute outside of a page");
}

/** Headers and body as the platform writes them, with the content type that `fetch` gives to that kind of body. */
function messageOf({ json, body, headers: given }: SubmissionRequest, settings: Settings): Response {
  let headers: Headers;
  try {
    headers = new Headers(given as Record<string, string> | undefined);
  } catch {
    // The message shows the value.
    return refuse("A header cannot be used");
  }
  const own = `${settings.keyHeader},${settings.firstSentHeader}`.toLowerCase().split(",");
  for (const [name] of headers) {
    if (NOT_KEPT.test(name) || own.includes(name)) refuse(`The header ${name} cannot be used`);
  }
  if (json !== undefined) {
    if (body !== undefined) refuse("The body cannot be used");
    if (!headers.has("content-type")) headers.set("content-type", "application/json");
    return new Response(jsonText(json), { headers });
  }
  // Others are another sequence of bytes each time, or one that can be read only once.
  const fixed = !body || typeof body === "string" || body instanceof URLSearchParams || body instanceof Uint8Array;
  return fixed ? new Response(body as string | undefined, { headers }) : refuse("The body cannot be used");
}
