import type { Outcome } from "../core/outcome.ts";
import type { OperationResponse, Rejection } from "../core/response.ts";
import type { Scope } from "../core/scope.ts";
import type { Operation } from "../engine/operation.ts";
import type { BodyForm, BodyRules } from "./body.ts";
import type { ProfileRequest } from "./profile-request.ts";

/** What a binding's `authorize` may say: `false` or an answer refuses, everything else lets the attempt pass. */
export type Authorization = boolean | undefined | OperationResponse | Rejection;

/**
 * How an operation is bound to a route. `Native` is the framework's own request (Hono: its context), as the
 * authentication before it left it.
 */
export interface BindingOptions<Native> {
  /**
   * Whose key it is: tenant and client from *authentication*, never from what the client may choose. Name the type of its
   * parameter (`(req: Request) => …`) to reach what your authentication put there. A malformed scope raises
   * `oncekey_scope_invalid`.
   */
  scope(native: Native): Scope | Promise<Scope>;
  /**
   * Decides every attempt, replays included, before the key is looked up. `false` answers 403; an answer
   * (`reject(404, …)`) is sent as it is and not stored; a throw reaches the framework's error handling. Default: allowed.
   */
  // biome-ignore lint/suspicious/noConfusingVoidType: a check that only throws returns nothing.
  authorize?(native: Native): Authorization | void | Promise<Authorization | void>;
  /** The name of the header or body member that carries the key. Default: the profile's. */
  readonly keyName?: string;
  /**
   * Whether a request without a key is refused. `false`: it runs once for itself, without any replay. `true` where the
   * dialect has keys optional: also with methods whose keys it ignores. Default: the profile's, for `ietf` true.
   */
  readonly requireKey?: boolean;
  /** Stored for resumes without a client: ids, never secrets. Default: nothing. */
  context?(native: Native): unknown;
  /** What the route takes and answers, where that is not what the operation does. Not with `capture`. Default: the operation's. */
  readonly form?: RouteForm<Native>;
  /** Which bodies are read; others get 415. Default: JSON and forms, for `capture` every kind. */
  readonly accepts?: readonly BodyForm[];
  /**
   * Lets numbers pass that ordinary JavaScript numbers cannot hold, where the handler (`capture`) or an earlier body
   * parser sees them as such. Requests that differ only beyond 2^53 may then be equal. Default false: 400.
   */
  readonly allowUnsafeNumbers?: boolean;
}

/** One form in which an API offers an operation: a vendor's paths, or a version of its own. */
export interface RouteForm<Native> {
  /**
   * The request's body as the operation's `input.body`. Compared stays what was sent (with `compare: "input"`: what this
   * gives). Where it cannot be read, give what the operation's schema refuses.
   */
  input(body: unknown, native: Native): unknown;
  /**
   * The operation's answer or rejection as the route's own, for the request that ran and for each replay alike: a pure
   * function, or a replay is not what the first answer was. Its headers are sent as they are.
   */
  answer(outcome: Outcome, request: ProfileRequest): OperationResponse | Promise<OperationResponse>;
}

/** How the binding reads bodies: the operation's limits, the route's choices. */
export function bodyRules<Native>(operation: Operation, options: BindingOptions<Native>): BodyRules {
  const { definition, engine, runKind } = operation;
  const captures = runKind === "capture";
  const allowUnsafeNumbers = options.allowUnsafeNumbers ?? false;
  return {
    limitBytes: definition.maxBodyBytes ?? engine.settings.maxBodyBytes,
    accepts: options.accepts ?? (captures ? ["json", "form", "multipart", "raw"] : ["json", "form"]),
    fractions: definition.fractions ?? "exact",
    ordinaryNumbers: captures && !allowUnsafeNumbers,
    allowUnsafeNumbers,
  };
}
