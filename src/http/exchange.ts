import type { HeaderLine, OutcomeBody } from "../core/outcome.ts";

/**
 * One HTTP request, free of any framework. An adapter fills it in; the gate reads nothing else.
 * `Native` is the framework's own request, handed to the user's `scope`, `authorize` and `context` functions.
 */
export interface Exchange<Native = unknown> {
  readonly native: Native;
  readonly method: string;
  /** The full original path and query as the client sent it, never a router's mounted remainder. */
  readonly target: string;
  /** Parameters of the matched route, decoded. */
  readonly params: Readonly<Record<string, string>>;
  /** Every field line of a header (name in lower case), in order; `[]` where absent. Lines must not be joined where the framework can tell. */
  headerLines(name: string): readonly string[];
  /** Reads the body, called at most once. Must stop at `limitBytes` (before decoding) with `too_large`. */
  readBody(limitBytes: number): Promise<BodyRead>;
  /**
   * How long the host will still let this request go on, in milliseconds, asked whenever it matters: a cloud function is
   * ended at its deadline. 0 is a time, not the lack of one. Default: no such end.
   */
  readonly remainingMs?: (() => number) | undefined;
}

/**
 * What reading a body gave. `decoded`: an earlier reader kept the bytes but has undone their content coding already.
 * `parsed`: an earlier parser of the framework consumed the body and only its value is left.
 */
export type BodyRead =
  | { readonly kind: "bytes"; readonly bytes: Uint8Array; readonly decoded?: boolean }
  | { readonly kind: "parsed"; readonly value: unknown }
  | { readonly kind: "too_large" };

/** A whole HTTP answer, ready to be written. Header names in lower case. */
export interface Answer {
  readonly status: number;
  readonly headers: readonly HeaderLine[];
  /** A long body has to be released by whoever writes the answer, or does not. */
  readonly body: OutcomeBody;
}
