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

/** How callers of some routes prove who they are, and what those get that cannot. */
export interface Credentials {
  /** The token that a request brings; `undefined`: none. */
  tokenOf(request: Request): string | undefined;
  refuse(request: Request, response: Response): void;
}

/** The API's own: a bearer token, and a problem body for whoever has none. */
const bearer: Credentials = {
  tokenOf: bearerOf,
  refuse(_request, response) {
    response.set("WWW-Authenticate", "Bearer");
    sendProblem(response, 401, { code: "unauthenticated", title: "A valid bearer token is required" });
  },
};

/** The bearer token of a request; `undefined` where it brings none. */
export function bearerOf(request: Request): string | undefined {
  return /^Bearer +(\S+)$/i.exec(request.get("authorization") ?? "")?.[1];
}

/**
 * Express middleware: refuses a missing, unknown or revoked token. It stands before the idempotency middleware, so that a
 * stored answer is only ever replayed to a caller who may still ask for it.
 */
export function authenticate(isRevoked: (token: string) => boolean, { tokenOf, refuse }: Credentials = bearer) {
  return (request: Request, response: Response, next: NextFunction): void => {
    const token = tokenOf(request);
    const caller = token === undefined || isRevoked(token) ? undefined : TOKENS.get(token);
    if (caller === undefined) {
      refuse(request, response);
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
