import type { Context, Next } from "hono";
import type { ClientErrorCode } from "oncekey";

/** How the old code put it. What it had no words for (503, too long a key) keeps ours. */
const OLD_WORDS: Partial<Record<ClientErrorCode, { readonly status: number; readonly error: string }>> = {
  idempotency_key_missing: { status: 400, error: "key_missing" },
  idempotency_request_invalid: { status: 400, error: "invalid_request" },
  idempotency_payload_mismatch: { status: 400, error: "key_reused" },
  idempotency_in_progress: { status: 409, error: "key_locked" },
};

/**
 * Goes before `idempotent()`: says Oncekey's own refusals in the old code's words. Answers of the operation, replays
 * included, pass as they are; only problem bodies with a code of ours are touched.
 */
export async function speakOldDialect(c: Context, next: Next): Promise<void> {
  await next();
  if (c.res.headers.get("content-type") !== "application/problem+json") return;
  const { code } = (await c.res.clone().json()) as { code?: ClientErrorCode };
  const old = code === undefined ? undefined : OLD_WORDS[code];
  if (old === undefined) return;
  const retryAfter = c.res.headers.get("retry-after");
  const headers = { "content-type": "application/json", ...(retryAfter === null ? {} : { "retry-after": retryAfter }) };
  // Hono adds the headers of the response before to one that replaces it, unless that one is taken away first.
  c.res = undefined;
  c.res = new Response(JSON.stringify({ error: old.error }), { status: old.status, headers });
}
