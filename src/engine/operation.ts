import type { RunKind } from "../core/entry.ts";
import type { FingerprintRing } from "../core/fingerprint.ts";
import type { InputSchemas } from "../core/input.ts";
import type { OperationOptions } from "./definition.ts";
import type { KeyState } from "./key-state.ts";
import type { OperationRequest } from "./request.ts";
import type { AnyResult } from "./run-result.ts";
import type { Settings } from "./settings.ts";

/** A registered operation, to be bound to a route, a queue, or run directly. Opaque: made by `once.transaction` and friends. */
export interface Operation<Kind extends RunKind = RunKind> {
  readonly runKind: Kind;
  readonly name: string;
  readonly version: number;
  /** The name identities and fingerprints are made from: the first alias, or the name. */
  readonly identityName: string;
  /** The operation's own rules, or else the instance's. */
  readonly rules: OperationRules;
  readonly definition: OperationOptions<InputSchemas>;
  /** @internal */
  readonly engine: Engine;
}

/** What an operation and its instance say together of its keys. */
export type OperationRules = Pick<Settings, "compare" | "keySpace" | "afterFailure">;

/** What a binding needs of the instance behind an operation. */
export interface Engine {
  readonly settings: Settings;
  readonly ring: FingerprintRing;
  /**
   * Runs the operation once for this identity, or answers from what an earlier or concurrent run gave. Raises what the
   * handler threw (nothing was stored), `oncekey_not_started`, `oncekey_closed`, and `idempotency_request_invalid` from
   * `request.input()` where the key is new.
   */
  execute(operation: Operation, request: OperationRequest): Promise<AnyResult>;
  /** Tells observers of a request that a binding refused before it had an identity. */
  refused(operation: Operation, error: unknown): void;
  /** Where an identity of the operation stands. Raises `oncekey_not_started`, `oncekey_closed`, `idempotency_store_unavailable`. */
  state(operation: Operation, id: Uint8Array): Promise<KeyState>;
  /** Called by an adapter when it binds an operation; raises `oncekey_operation_unknown` for a foreign one. */
  bound(operation: Operation, binding: { readonly requiresKey: boolean }): void;
}
