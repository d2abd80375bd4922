/** The front door: defining, starting and running operations. Re-exports only. */

export type { BodyList, BodyStore, LooseBody } from "./core/body-store.ts";
export type { EncryptionKey } from "./core/cipher.ts";
export { type Clock, systemClock } from "./core/clock.ts";
export type { Decision, EntryState, RunKind, StoredEntry } from "./core/entry.ts";
export { type ClientErrorCode, codes, type ErrorCode, OncekeyError, type RetryAdvice } from "./core/errors.ts";
export type { Compare, FingerprintSecret } from "./core/fingerprint.ts";
export type { KeySpace } from "./core/identity.ts";
export type { InputOf, InputPart, InputSchemas, RawInput } from "./core/input.ts";
export type { KeyForm } from "./core/intent.ts";
export { stringifyJson } from "./core/json/stringify.ts";
export { type KeyLimit, providerKeyLimits } from "./core/key-limits.ts";
export type { OpenedTransaction } from "./core/opened-transaction.ts";
export type { HeaderLine, Outcome } from "./core/outcome.ts";
export type { Random } from "./core/random.ts";
export { happened, notDone, type Reconcile, type ReconcileArguments, type Reconciled } from "./core/reconcile.ts";
export {
  ambiguous,
  type CallArguments,
  type Cancel,
  type Find,
  type Found,
  found,
  none,
  type Recover,
  type RecoverByCancel,
  type RecoverByDedupe,
  type RecoverBySettling,
  type RecoverNever,
  unknown,
} from "./core/recover.ts";
export {
  accepted,
  created,
  type HeaderInit,
  json,
  noContent,
  type OperationResponse,
  ok,
  type Rejection,
  type RejectOptions,
  reject,
  respond,
} from "./core/response.ts";
export type { Scope } from "./core/scope.ts";
export type { SchemaIssue, SchemaResult, StandardSchema } from "./core/standard-schema.ts";
export {
  type ClaimCommit,
  type Store,
  StoreFailure,
  type StoreFailureKind,
  type StoreTraits,
  type WithinTransaction,
} from "./core/store.ts";
export type {
  BatchStep,
  ConsumeOptions,
  ConsumeResult,
  DeliveryStep,
  IncomingDelivery,
  NumberedBatch,
  NumberedBatchOptions,
  NumberedBatchResult,
  NumberedMessage,
  SequenceResult,
  Unsettled,
} from "./engine/arrival.ts";
export type {
  AfterFailure,
  CallOptions,
  CaptureDefinition,
  Completed,
  OperationOptions,
  Origin,
  PhaseStep,
  PhasesContext,
  PhasesDefinition,
  Send,
  SendOptions,
  Step,
  TransactionDefinition,
  TransactionStep,
} from "./engine/definition.ts";
export type { DirectRun } from "./engine/direct-request.ts";
export type { Observer } from "./engine/emitter.ts";
export type {
  DeliveryEvent,
  EventKind,
  MessageEvent,
  OncekeyEvent,
  PurgedEvent,
  RunEvent,
  WebhookRefusedEvent,
} from "./engine/event.ts";
export { jsonAnswer } from "./engine/fetch.ts";
export type {
  FetchAnswer,
  FetchOptions,
  FetchRecord,
  FetchRequest,
  FetchSending,
  HeaderFields,
} from "./engine/fetch-options.ts";
export type { KeyState } from "./engine/key-state.ts";
export type { Oncekey } from "./engine/oncekey.ts";
export type { Operation } from "./engine/operation.ts";
export { assertOwned, currentOrigin, sendInside } from "./engine/owned-attempt.ts";
export type { RunResult } from "./engine/run-result.ts";
export type { ErrorContext, OncekeyOptions } from "./engine/settings.ts";
export type { Instance } from "./engine/sweeping.ts";
export type { Authorization, BindingOptions, RouteForm } from "./http/binding.ts";
export type { BodyForm } from "./http/body.ts";
export { createOncekey } from "./http/create-oncekey.ts";
export { type OpenApiObject, type OpenApiOptions, openApiOperation, problemSchema } from "./http/openapi.ts";
export { operationStatus, type StatusAnswer, type StatusRequest } from "./http/operation-status.ts";
export type { ProfileRequest } from "./http/profile-request.ts";
