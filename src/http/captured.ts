import { OncekeyError } from "../core/errors.ts";
import type { HeaderLine, Outcome } from "../core/outcome.ts";
import { codingNames, decodeContent } from "./coding.ts";
import { isBodyless } from "./replay.ts";

/** What an adapter changes in the head of a handler's own answer. */
export interface HeadChanges {
  readonly add: readonly HeaderLine[];
  /** The replay marker, which no handler may set. */
  readonly remove: string;
}

/** Largest answer that is decoded for storage: what a compressed answer may unfold to. */
const MAX_DECODED_BYTES = 64 * 1_048_576;

/**
 * What a handler answered, as an outcome: the bytes of the representation itself. A content coding was negotiated with
 * this client only (compression may run outside or inside of us), so it is undone and its header dropped; a replay is
 * coded anew, or not. Raises `oncekey_stream_refused` for a coding that cannot be undone.
 */
export async function capturedOutcome(
  status: number,
  headers: readonly HeaderLine[],
  body: Uint8Array,
): Promise<Outcome> {
  if (isBodyless(status)) return { status, headers, body: new Uint8Array() };
  const codings = headers.filter(([name]) => name === "content-encoding").map(([, value]) => value);
  const coding = codings.join(",");
  if (body.length === 0 || codingNames(coding).length === 0) return { status, headers, body };
  const decoded = await decodeContent(coding, body, MAX_DECODED_BYTES);
  if (decoded.kind !== "bytes") throw undecodable(decoded.kind);
  return { status, headers: headers.filter(([name]) => name !== "content-encoding"), body: decoded.bytes };
}

function undecodable(why: string): OncekeyError {
  return new OncekeyError(
    "oncekey_stream_refused",
    `The captured handler answered in a content coding that cannot be undone for replay (${why}). Its answer was not stored; the key needs recovery. Compress outside of Oncekey, or with gzip, deflate or br.`,
  );
}

/**
 * Refuses an answer that has no end or leaves HTTP: an event stream, a switch of protocols. Raises
 * `oncekey_stream_refused` before its first byte is sent.
 */
export function refuseStream(status: number, contentType: unknown): void {
  const type = String(contentType ?? "").trim();
  if (status !== 101 && !/^text\/event-stream\b/i.test(type)) return;
  throw new OncekeyError(
    "oncekey_stream_refused",
    "The captured handler began an event stream or switched protocols, which cannot be replayed. Nothing was sent or stored; the key needs recovery. Serve streams on a route of their own, without Oncekey.",
  );
}
