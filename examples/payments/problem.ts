import type { NextFunction, Request, Response } from "express";
import { writeExact } from "./exact-json.ts";

/** Says what went wrong in another form than a problem body; its place is `response.locals.sayProblem`. */
export type SayProblem = (response: Response, status: number, problem: Readonly<Record<string, unknown>>) => void;

/** Sends a problem body (RFC 9457), or what the API's dialect has in its place. */
export function sendProblem(response: Response, status: number, problem: Readonly<Record<string, unknown>>): void {
  const { sayProblem } = response.locals as { readonly sayProblem?: SayProblem };
  if (sayProblem !== undefined) {
    sayProblem(response, status, problem);
    return;
  }
  response
    .status(status)
    .type("application/problem+json")
    .send(writeExact({ type: "about:blank", status, ...problem }));
}

/** Sends JSON with exact digits; `response.json` would fail on a bigint. */
export function sendJson(response: Response, status: number, value: unknown): void {
  response.status(status).type("application/json").send(writeExact(value));
}

/** The last route. */
export function notFound(_request: Request, response: Response): void {
  sendProblem(response, 404, { code: "not_found", title: "There is no such resource" });
}

/** What Express's body parsers refuse, in the words of the idempotency middleware. */
const BODY_PROBLEMS = new Map([
  [400, { code: "idempotency_request_invalid", title: "The request is not valid" }],
  [413, { code: "idempotency_request_too_large", title: "The request body is too large" }],
  [415, { code: "idempotency_request_unsupported", title: "The request's coding is not supported" }],
]);

/**
 * The last error handler. What a handler threw was rolled back or is kept as unfinished, so the same key may try again.
 * Logs the error's name and place only: a message may hold what the client sent.
 */
export function answerError(error: unknown, _request: Request, response: Response, next: NextFunction): void {
  const { status = 500, expose } = error as { status?: number; expose?: boolean };
  const refused = expose === true ? BODY_PROBLEMS.get(status) : undefined;
  if (response.headersSent) {
    next(error);
  } else if (refused !== undefined) {
    sendProblem(response, status, { ...refused, retry: "same_key", state: "none" });
  } else {
    console.error(`unexpected: ${describeError(error)}`);
    sendProblem(response, 500, { code: "internal_error", title: "Something went wrong here", retry: "same_key" });
  }
}

/** An error without its message. */
export function describeError(error: unknown): string {
  if (!(error instanceof Error)) return typeof error;
  const place = error.stack?.split("\n").find((line) => line.trimStart().startsWith("at "));
  const code = "code" in error ? ` ${String(error.code)}` : "";
  return `${error.name}${code} ${place?.trim() ?? ""}`;
}
