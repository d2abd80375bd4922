import type { NextFunction, Request, Response } from "express";
import { sendProblem } from "./problem.ts";

/** Whom a token belongs to. It stays the same when tokens rotate, so that a retry under the new one is still a retry. */
export interface Caller {
  readonly tenant: string;
  readonly client: string;
}

/** The example's customers. A real service looks them up. */
export const TOKENS: ReadonlyMap<string, Caller> = new Map([
  ["sk_test_acme", { tenant: "acme", client: "app" }],
  ["sk_test_acme_batch", { tenant: "acme", client: "batch" }],
  ["sk_test_globex", { tenant: "globex", client: "app" }],
]);

const callers = new WeakMap<Request, Caller>();

/**
 * Express middleware: 401 for a missing, unknown or revoked bearer token. It stands before the idempotency middleware,
 * so that a stored answer is only ever replayed to a caller who may still ask for it.
 */
export function authenticate(isRevoked: (token: string) => boolean) {
  return (request: Request, response: Response, next: NextFunction): void => {
    const token = /^Bearer +(\S+)$/i.exec(request.get("authorization") ?? "")?.[1];
    const caller = token === undefined || isRevoked(token) ? undefined : TOKENS.get(token);
    if (caller === undefined) {
      response.set("WWW-Authenticate", "Bearer");
      sendProblem(response, 401, { code: "unauthenticated", title: "A valid bearer token is required" });
      return;
    }
    callers.set(request, caller);
    next();
  };
}

/** The authenticated caller: also the scope of its keys. */
export function callerOf(request: Request): Caller {
  const caller = callers.get(request);
  if (caller === undefined) throw new Error("callerOf was used on a route without authenticate.");
  return caller;
}
