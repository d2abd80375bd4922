import type { HeaderLine } from "../core/outcome.ts";

/**
 * An HTTP dialect, as data: which header carries the key, how a replay is marked, what a client reads. Header names in
 * lower case. Another dialect is another file under `profiles/` and one row in its registry.
 */
export interface Profile {
  readonly name: string;
  /** The request header with the key. */
  readonly keyHeader: string;
  /** Sent with every answer that comes from a stored outcome, waiters included, and never with the executor's. */
  readonly replayMarker: HeaderLine;
  /** Carries the retention in seconds, where the instance publishes it. */
  readonly retentionHeader: string;
  /** What a client gets while nobody knows what the first request did but a 5xx of it was kept. */
  readonly provisional: "refused" | "replayed";
  /** Media type of the problem bodies. */
  readonly problemType: string;
}
