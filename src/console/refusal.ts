/** A request that the console does not carry out: status, code and a message that says what was kept and what to do. */
export class Refusal extends Error {
  override readonly name = "Refusal";
  readonly status: number;
  readonly code: string;
  /** More members of the answer's `error`. */
  readonly more: Readonly<Record<string, unknown>>;
  /** Seconds; `null`: no `Retry-After`. */
  readonly retryAfterS: number | null;

  constructor(
    status: number,
    code: string,
    message: string,
    {
      more = {},
      retryAfterS = null,
      cause,
    }: { more?: Record<string, unknown>; retryAfterS?: number | null; cause?: unknown } = {},
  ) {
    super(message, cause === undefined ? undefined : { cause });
    this.status = status;
    this.code = code;
    this.more = more;
    this.retryAfterS = retryAfterS;
  }
}

/** The request itself is wrong. `what` is a sentence without its full stop. */
export function badRequest(what: string): Refusal {
  return new Refusal(400, "console_request_invalid", `${what}. Nothing was changed.`);
}

/** There is no such thing, or it is another tenant's: which of the two is not told. */
export function notFound(what: string): Refusal {
  return new Refusal(
    404,
    "console_not_found",
    `There is no such ${what}, or it is not yours to see. Nothing was changed.`,
  );
}
