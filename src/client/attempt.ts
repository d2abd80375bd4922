import { answerOf, jsonOf, typeOf } from "./answer.ts";
import { fromBase64 } from "./bytes.ts";
import type { Settings } from "./settings.ts";
import type { ClientResponse, StoredSubmission } from "./submission.ts";
import { sleep, within } from "./waiting.ts";

/** An answer, or why there is none. `unsent`: it surely did not leave; `redirected`: the answer points elsewhere. */
export type AttemptEnd = ClientResponse | "unsent" | "no_answer" | "answer_cut" | "redirected";

/** What Node says of a connection that never came about; browsers tell nothing. */
const UNSENT = /^(ECONNREFUSED|ENOTFOUND|EAI_AGAIN)$/;

/**
 * Sends a submission once and reads the whole answer, within `attemptTimeoutMs`. Never raises for what the network does;
 * the abort of `signal` looks like a lost answer.
 */
export function attempt(
  { request: { url, method, bodyBase64 } }: StoredSubmission,
  headers: Headers,
  { fetch, attemptTimeoutMs }: Settings,
  given: AbortSignal,
): Promise<AttemptEnd> {
  return within(given, ({ signal }) => {
    let lost: AttemptEnd = "no_answer";
    const exchange = async (): Promise<AttemptEnd> => {
      const body = bodyBase64 && fromBase64(bodyBase64);
      // Followed by itself, a 303 would look like success and a 307 would carry the request to another server.
      const response = await (fetch ?? globalThis.fetch)(url, { method, headers, body, redirect: "manual", signal });
      const { status, type, redirected } = response;
      // A browser shows no more of a redirect than its type; what followed one all the same came from somebody else.
      if (type === "opaqueredirect" || redirected || (status >= 300 && status < 400)) return "redirected";
      lost = "answer_cut";
      const answer = answerOf(status, [...response.headers], new Uint8Array(await response.arrayBuffer()));
      return isCut(answer) ? lost : answer;
    };
    // One of the caller's may have tried more than once, and tell of its last try.
    const failed = (error: { readonly cause?: { readonly code?: string } } | undefined) =>
      !fetch && UNSENT.test(error?.cause?.code ?? "") ? "unsent" : lost;
    // A fetch of the caller's may not know the signal: it is left behind then.
    return Promise.race([exchange().catch(failed), sleep(attemptTimeoutMs, signal).then(() => lost)]);
  });
}

/**
 * Fewer bytes than announced, which a custom `fetch` may let pass (a decoded body has another length by nature); or, where
 * nothing tells the length, JSON that has no end: a connection that breaks then ends the body just as one that is closed.
 */
function isCut(answer: ClientResponse): boolean {
  const { body, header } = answer;
  const announced = header("content-length");
  if (announced !== null) return header("content-encoding") === null && body.length < Number(announced);
  return /[/+]json\b/.test(typeOf(answer)) && body.length > 0 && jsonOf(answer) === undefined;
}

/**
 * The headers of one attempt: those kept and the key, which win, over those that are asked for anew each time. Raises what
 * `attemptHeaders` raises.
 */
export async function headersFor(record: StoredSubmission, firstSentAt: number, settings: Settings): Promise<Headers> {
  const { attemptHeaders, firstSentHeader } = settings;
  const headers = new Headers(await attemptHeaders?.());
  for (const [name, value] of record.request.headers) headers.set(name, value);
  headers.set(record.request.keyHeader, record.key);
  if (firstSentHeader) headers.set(firstSentHeader, new Date(firstSentAt).toUTCString());
  return headers;
}
