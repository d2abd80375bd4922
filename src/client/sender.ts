import { carry } from "./carry.ts";
import type { FixedRequest } from "./request.ts";
import { isSent } from "./retry-window.ts";
import type { Settings } from "./settings.ts";
import { placeOf, type Shelf } from "./shelf.ts";
import type { StoredSubmission, SubmissionResult } from "./submission.ts";
import type { Tell } from "./tell.ts";
import { storedResult } from "./verdict.ts";
import { within } from "./waiting.ts";

/** Sends submissions, one run at a time for each. */
export interface Sender {
  /** The one of that name, made and kept where there is none. Raises the storage's error. */
  findOrMake(name: string, fixed: FixedRequest, signal?: AbortSignal): Promise<StoredSubmission>;
  /**
   * Makes or finds it and sends it. Calls for one submission take turns, and those that come later find its result: a double
   * click is sent once. Raises what `attemptHeaders` raises.
   */
  send(name: string, fixed: FixedRequest, signal?: AbortSignal): Promise<SubmissionResult>;
  /** Aborts all that this client sends under a name. */
  stop(name: string): void;
}

/** When a lock that is not ours yet counts as somebody else's. */
const WAITING_AFTER_MS = 100;

/** What sending takes. */
interface Parts {
  readonly settings: Settings;
  readonly shelf: Shelf;
  readonly tell: Tell;
}

/** Makes a sender. */
export function makeSender(settings: Settings, shelf: Shelf, tell: Tell): Sender {
  const parts: Parts = { settings, shelf, tell };
  const live = new Map<AbortController, string>();
  return {
    findOrMake: (name, fixed, signal) => findOrMake(parts, name, fixed, signal),
    async send(name, fixed, signal = new AbortController().signal) {
      const result = await within(signal, (over) => {
        live.set(over, name);
        return sendAlone(parts, name, fixed, over.signal).finally(() => live.delete(over));
      });
      tell(name, { kind: "ended", result: result.kind });
      return result;
    },
    stop(name) {
      for (const [over, other] of live) if (other === name) over.abort();
    },
  };
}

async function findOrMake(
  { settings: { storage }, shelf, tell }: Parts,
  name: string,
  fixed: FixedRequest,
  signal?: AbortSignal,
): Promise<StoredSubmission> {
  // Without the lock where one is there: its holder may send for minutes.
  const found = await shelf.peek(name);
  if (found === null || placeOf(found, fixed) === "free") {
    return storage.exclusively(name, () => shelf.place(name, fixed), signal);
  }
  tell(name, { kind: "found" });
  return found;
}

async function sendAlone(
  parts: Parts,
  name: string,
  fixed: FixedRequest,
  signal: AbortSignal,
): Promise<SubmissionResult> {
  const { settings, shelf, tell } = parts;
  let work: Promise<SubmissionResult> | undefined;
  const waiting = setTimeout(() => tell(name, { kind: "waiting_for_other" }), WAITING_AFTER_MS);
  try {
    // Under a lock of its own, so that whoever only wants to know of it need not wait for the sending.
    const found = await findOrMake(parts, name, fixed, signal);
    if (placeOf(found, fixed) === "in_the_way") return inTheWay(found);
    const run = async () => {
      clearTimeout(waiting);
      work = sendLocked(parts, fixed, found, signal);
      // What it raises is the caller's, not the lock's.
      await work.catch(() => {});
    };
    await settings.storage.exclusively(name, run, signal);
  } catch (cause) {
    // A lock that fails after the work takes nothing from its result.
    if (work === undefined) return signal.aborted ? aborted(shelf, name) : { kind: "not_kept", cause };
  } finally {
    clearTimeout(waiting);
  }
  return work ?? aborted(shelf, name);
}

/** `seen`: as it was when the call came; a refusal that came since then is this call's result, too. */
async function sendLocked(
  { settings, shelf, tell }: Parts,
  fixed: FixedRequest,
  seen: StoredSubmission,
  signal: AbortSignal,
): Promise<SubmissionResult> {
  let placed: StoredSubmission;
  try {
    placed = await shelf.place(seen.name, fixed, true);
  } catch (cause) {
    return { kind: "not_kept", cause };
  }
  if (placeOf(placed, fixed) === "in_the_way") return inTheWay(placed);
  const result = storedResult(placed);
  const again = result?.kind === "refused" && result.retry === "same_key" && placed.attempts <= seen.attempts;
  if (result !== null && !again) return result;
  const record = again ? { ...placed, settled: null, firstSentAt: null } : placed;
  return carry(record, { settings, shelf, signal, tell });
}

function aborted(shelf: Shelf, name: string): SubmissionResult {
  const known = shelf.remembered(name);
  return { kind: "aborted", sent: known !== undefined && isSent(known) };
}

function inTheWay({ name, settled }: StoredSubmission): SubmissionResult {
  return { kind: "in_the_way", name, settled: settled !== null };
}
