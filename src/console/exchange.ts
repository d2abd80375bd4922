/** A request as the console reads it, whatever host it came through. */
export interface Asked {
  readonly method: string;
  /** Below the console's own path: `/`, `/api/overview`. */
  readonly path: string;
  readonly query: URLSearchParams;
  /** Whether it came over TLS, as far as the host knows. */
  readonly secure: boolean;
  /** What the host calls the request: Node's, Express's, or a `Request`. */
  readonly native: unknown;
  /** Aborts when the caller is gone. */
  readonly signal: AbortSignal;
  header(name: string): string | null;
  /** `null`: longer than the limit. */
  readBody(limitBytes: number): Promise<Uint8Array | null>;
}

/** One that goes on: whoever opened it writes until the signal aborts or it ends it itself. */
export interface OpenStream {
  write(text: string): void;
  end(): void;
  readonly signal: AbortSignal;
}

/** An answer of the console. */
export interface Answered {
  readonly status: number;
  readonly headers: readonly (readonly [name: string, value: string])[];
  readonly body: Uint8Array | string;
  /** In place of a body. */
  readonly stream?: (open: OpenStream) => void;
}

/** What `authorize` is given. */
export interface ConsoleRequest {
  readonly method: string;
  /** Below the console's own path: `/api/overview`. */
  readonly path: string;
  /** The request of the host: Node's or Express's (where earlier middleware has put what it knows), or a `Request`. */
  readonly native: unknown;
  /** A header's value; `null`: there is none. */
  header(name: string): string | null;
}

const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'self'",
  "frame-ancestors 'none'",
].join("; ");

/** On every answer of the console. */
export const SAFE_HEADERS: Answered["headers"] = [
  ["content-security-policy", POLICY],
  ["x-content-type-options", "nosniff"],
  ["referrer-policy", "no-referrer"],
  ["cross-origin-resource-policy", "same-origin"],
  ["cross-origin-opener-policy", "same-origin"],
  ["x-frame-options", "DENY"],
];

const NEVER_STORED = ["cache-control", "no-store"] as const;

/** An answer in JSON; instants become ISO texts. */
export function jsonAnswer(status: number, value: unknown, more: Answered["headers"] = []): Answered {
  const headers = [
    ...SAFE_HEADERS,
    NEVER_STORED,
    ["content-type", "application/json; charset=utf-8"],
    ...more,
  ] as const;
  return { status, headers, body: JSON.stringify(value) };
}

/** An answer in plain text. */
export function textAnswer(status: number, text: string, more: Answered["headers"] = []): Answered {
  const headers = [...SAFE_HEADERS, NEVER_STORED, ["content-type", "text/plain; charset=utf-8"], ...more] as const;
  return { status, headers, body: text };
}

/** An answer without a body. */
export function emptyAnswer(status: number, more: Answered["headers"] = []): Answered {
  return { status, headers: [...SAFE_HEADERS, NEVER_STORED, ...more], body: "" };
}

/** Server-sent events; nothing between may hold them back. */
export function streamAnswer(stream: (open: OpenStream) => void): Answered {
  const headers = [
    ...SAFE_HEADERS,
    NEVER_STORED,
    ["content-type", "text/event-stream; charset=utf-8"],
    ["x-accel-buffering", "no"],
  ] as const;
  return { status: 200, headers, body: "", stream };
}
