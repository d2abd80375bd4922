import type { OperationResponse, Rejection } from "./response.ts";
import type { Scope } from "./scope.ts";

/** What a `reconcile` function gets: the entry's identity, never its payload. */
export interface ReconcileArguments {
  /** The identity's digest as 64 hex digits; what a handler may have written beside its rows to be found again. */
  readonly id: string;
  readonly scope: Scope;
  /** The key in its stored form. */
  readonly key: string;
  /** What the binding declared for resumes without a client. */
  readonly context: unknown;
  /** Aborts when the reconciliation loses its lease. */
  readonly signal: AbortSignal;
}

/** What `reconcile` found out about a captured run whose end nobody saw. */
export type Reconciled =
  | { readonly kind: "happened"; readonly response: OperationResponse | Rejection }
  | { readonly kind: "not_done" }
  | { readonly kind: "unknown"; readonly why: string };

/** Asks the handler's own tables what a run did. A throw means `unknown`. */
export type Reconcile = (run: ReconcileArguments) => Promise<Reconciled>;

/** It was carried out (or refused for good): this is the answer that every retry gets from now on. */
export function happened(response: OperationResponse | Rejection): Reconciled {
  return { kind: "happened", response };
}

/** Proven: it has done nothing and never will. The next retry runs it. */
export function notDone(): Reconciled {
  return { kind: "not_done" };
}
