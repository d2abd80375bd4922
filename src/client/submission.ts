/** One header field of a submission: name and value. */
export type HeaderPair = readonly [name: string, value: string];

/** What the user wants done, once. Its bytes are fixed when the submission is made, and kept. */
export interface SubmissionRequest {
  /** `POST` by default; any method but the safe ones. */
  readonly method?: string;
  /** Absolute, or (in a browser) relative to the page. It is kept as an absolute one. */
  readonly url: string;
  /** Kept with the submission: no credentials. Names that sound like them are refused here, see `attemptHeaders`. */
  readonly headers?: Readonly<Record<string, string>> | readonly HeaderPair[];
  /** Written as JSON once; bigint as exact digits. Not together with `body`. */
  readonly json?: unknown;
  /** The bytes to send; text is sent as UTF-8, pairs as a form. */
  readonly body?: string | Uint8Array | URLSearchParams;
  /**
   * A key of your own, made when the user acted and kept by you. One derived from the payload alone is refused: two equal
   * orders would be one. Default: a new random one.
   */
  readonly key?: string;
}

/** A whole answer, in memory. */
export interface ClientResponse {
  readonly status: number;
  readonly headers: readonly HeaderPair[];
  readonly body: Uint8Array;
  /** The first value of a header; `null` where it is absent. */
  header(name: string): string | null;
  /** The body as UTF-8 text. */
  text(): string;
  /** The body as JSON. Raises `SyntaxError` where it is none. */
  json(): unknown;
}

/** What is known of a submission in the end, or for now. Only `succeeded` and `refused` are final. */
export type SubmissionResult =
  /** The server carried it out. `replayed`: an earlier attempt did. */
  | { readonly kind: "succeeded"; readonly response: ClientResponse; readonly replayed: boolean }
  /** The server will not carry it out as it is, and says so. `code`: the problem's own, where its body names one. */
  | {
      readonly kind: "refused";
      readonly response: ClientResponse;
      readonly replayed: boolean;
      readonly code: string | null;
      /**
       * False: an earlier attempt got no answer, and this refusal does not tell of it (no longer signed in, a conflict, a
       * condition that fails), so it may have been carried out all the same. The submission stays pending then.
       */
      readonly certain: boolean;
      /** `new_key`: correct it and submit anew; `same_key`: may be sent again later; `never`: look the result up. */
      readonly retry: "new_key" | "same_key" | "never";
    }
  /**
   * Nobody here knows whether it was carried out. It is kept, and the last answer is shown where there was one. `sent`
   * false: it surely was not, because no attempt got through.
   */
  | {
      readonly kind: "unknown";
      readonly why: UnknownWhy;
      readonly response: ClientResponse | null;
      readonly sent: boolean;
    }
  /** The caller aborted. It is kept; `resume()` goes on. `sent`: an attempt may have been carried out. */
  | { readonly kind: "aborted"; readonly sent: boolean }
  /** It could not be kept, or what is kept could not be read (storage full, blocked, damaged): this call sent nothing. */
  | { readonly kind: "not_kept"; readonly cause: unknown }
  /**
   * Another request of this name may have been carried out (`settled`: it surely was). Nothing was sent. Another action of
   * the user needs another name; `discard()` lets go of the one that is in the way.
   */
  | { readonly kind: "in_the_way"; readonly name: string; readonly settled: boolean };

/**
 * Why nobody knows. `window_over`: tried for as long as is allowed; `retention_over`: the server may have forgotten the key,
 * so that another attempt might run it again; `redirected`: a redirect was not followed; `not_understood`: an answer that no
 * API of this kind gives (a page of HTML with 200); `in_the_dark`: the server itself does not know, for too long, or will
 * never answer anything but its stored error.
 */
export type UnknownWhy = "window_over" | "retention_over" | "redirected" | "not_understood" | "in_the_dark";

/** A submission as it is stored: plain JSON data. Frozen from the first release; another layout gets another `form`. */
export interface StoredSubmission {
  readonly form: 1;
  /** Of the user's action, unique in the storage. */
  readonly name: string;
  readonly key: string;
  readonly request: {
    readonly method: string;
    readonly url: string;
    readonly headers: readonly HeaderPair[];
    readonly bodyBase64: string | null;
    /** The header that carries the key, in each attempt: under another one, the server would not know it again. */
    readonly keyHeader: string;
  };
  /** Wall-clock milliseconds, for people and for the server; clocks move, so durations are counted in `spentMs`. */
  readonly createdAt: number;
  /**
   * The first attempt that may have been carried out, in wall-clock milliseconds; written before it is made. `null` again
   * where all attempts so far ended before the work can have begun (connection refused, 401, 429).
   */
  readonly firstSentAt: number | null;
  readonly attempts: number;
  /** How much of the retry window was used up at `spentAt`, in milliseconds. */
  readonly spentMs: number;
  /** When `spentMs` was true, in wall-clock milliseconds: what passed since then counts too. */
  readonly spentAt: number;
  /** What the server said it keeps answers for, in milliseconds; `null`: it has not said. */
  readonly retentionMs: number | null;
  readonly settled: StoredSettlement | null;
}

/** A final result as it is stored. */
export interface StoredSettlement {
  readonly kind: "succeeded" | "refused";
  readonly at: number;
  readonly replayed: boolean;
  readonly status: number;
  readonly headers: readonly HeaderPair[];
  readonly bodyBase64: string;
}
