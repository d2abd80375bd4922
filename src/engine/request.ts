import type { RequestProof } from "../core/fingerprint.ts";
import type { Identity } from "../core/identity.ts";
import type { AnyOutcome } from "../core/outcome.ts";

/** One request for an operation, as the engine takes it: from a binding (HTTP, queue) or from `once.run`. */
export interface OperationRequest {
  readonly identity: Identity;
  readonly proof: RequestProof;
  /**
   * The validated input; called at most once, after the look-up, so that a known key meets its entry before validation.
   * Raises `idempotency_request_invalid`.
   */
  input(): Promise<unknown>;
  /** What the operation's `context` declared for the sweeper: ids, never secrets. `null`: nothing. */
  readonly context: unknown;
  /** What ties the request to its caller's logs (`traceparent`, else `X-Request-Id`). Default: nothing. */
  readonly correlation?: string | null;
  /** How long a duplicate of a running request may wait for its outcome, in milliseconds. */
  readonly waitMs: number;
  /**
   * How long the host will still let this request go on (a cloud function's remaining time), in milliseconds, asked
   * directly before a run begins. The run ends by then: 0 or less begins none. Default: no end but the operation's own.
   */
  readonly remainingMs?: (() => number) | undefined;
  /**
   * When the client says it first sent this request, in milliseconds since 1970. Where that is longer ago than outcomes are
   * kept and the key is unknown, the operation does not run. Default: nothing is said.
   */
  readonly firstSentAtMs?: number | undefined;
  /** The existing handler of a `capture` operation; absent for the other kinds. */
  readonly handler?: CapturedHandler;
}

/**
 * Runs an existing handler and resolves with all it answered, headers unfiltered, before a byte of it was sent. Rejects
 * when the handler threw. The signal aborts when the lease or the time of the operation is lost.
 */
export type CapturedHandler = (signal: AbortSignal) => Promise<AnyOutcome>;
