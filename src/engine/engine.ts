import type { FingerprintRing } from "../core/fingerprint.ts";
import type { Settings } from "./settings.ts";
import type { Operation } from "./operation.ts";
import type { OperationRequest } from "./request.ts";
import type { RunResult } from "./run-result.ts";

/** What a binding needs of the instance behind an operation. */
export interface Engine {
  readonly settings: Settings;
  readonly ring: FingerprintRing;
  /**
   * Runs the operation once for this identity, or answers from what an earlier or concurrent run gave. Raises what the
   * handler threw (nothing was stored), `oncekey_not_started`, `oncekey_closed`, and `idempotency_request_invalid` from
   * `request.input()` where the key is new.
   */
  execute(operation: Operation, request: OperationRequest): Promise<RunResult>;
  /** Called by an adapter when it binds an operation; raises `oncekey_operation_unknown` for a foreign one. */
  bound(operation: Operation, binding: { readonly requiresKey: boolean }): void;
}
