import { OncekeyError } from "../core/errors.ts";
import type { AnyOutcome, HeaderLine, OutcomeBody } from "../core/outcome.ts";
import { codingNames } from "./coding.ts";
import type { RecordingLimits } from "./recording-limits.ts";
import { isBodyless } from "./replay.ts";
import type { Spool } from "./spool.ts";
import { unfold } from "./unfold.ts";

/** What an adapter changes in the head of a handler's own answer. */
export interface HeadChanges {
  readonly add: readonly HeaderLine[];
  /** The replay marker, which no handler may set; `null`: the dialect has none. */
  readonly remove: string | null;
}

/** A recorded answer, complete. */
export interface Captured {
  /** What is stored: the bytes of the representation itself. */
  readonly outcome: AnyOutcome;
  /** What is sent: the bytes as the handler wrote them. */
  readonly body: OutcomeBody;
  /** Gives back what holds the bytes. Calling it again does nothing. */
  release(): void;
  /** The same where somebody may still be storing the outcome. */
  abandon(): void;
}

/**
 * What a handler answered, as an outcome. A content coding was negotiated with this client only (compression may run
 * outside or inside of us), so it is undone and its header dropped; a replay is coded anew, or not. Raises
 * `oncekey_stream_refused` for a coding that cannot be undone, and as the spool does; the spool is then released.
 */
export async function captured(
  status: number,
  headers: readonly HeaderLine[],
  spool: Spool,
  limits: RecordingLimits,
): Promise<Captured> {
  const { release, abandon } = spool;
  try {
    const body = await spool.end();
    const coding = headers.filter(([name]) => name === "content-encoding").map(([, value]) => value);
    if (isBodyless(status) || body.length === 0 || codingNames(coding.join()).length === 0) {
      return { outcome: { status, headers, body }, body, release, abandon };
    }
    const unfolded = await unfold(coding.join(), body, limits);
    if (unfolded.kind !== "unfolded") throw undecodable(unfolded.kind);
    const kept = headers.filter(([name]) => name !== "content-encoding");
    return { outcome: { status, headers: kept, body: unfolded.body }, body, ...both(spool, unfolded.spool) };
  } catch (error) {
    release();
    throw error;
  }
}

function both(coded: Spool, unfolded: Spool): Pick<Captured, "release" | "abandon"> {
  return {
    release() {
      coded.release();
      unfolded.release();
    },
    abandon() {
      coded.abandon();
      unfolded.abandon();
    },
  };
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
  if (status !== 101 && !/^(?:text\/event-stream|multipart\/x-mixed-replace)\b/i.test(type)) return;
  throw new OncekeyError(
    "oncekey_stream_refused",
    "The captured handler began an endless stream or switched protocols, which cannot be replayed. Nothing was sent or stored; the key needs recovery. Serve streams on a route of their own, without Oncekey.",
  );
}
