import { cipherOf } from "../core/cipher.ts";
import { OncekeyError } from "../core/errors.ts";
import { fingerprintRing } from "../core/fingerprint.ts";
import type { InputSchemas } from "../core/input.ts";
import { checkTimes } from "../core/policy.ts";
import type { Store } from "../core/store.ts";
import type {
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
} from "./arrival.ts";
import { consume } from "./consume.ts";
import { consumeBatch } from "./consume-batch.ts";
import { consumeNumbered } from "./consume-numbered.ts";
import { consumeNumberedBatch } from "./consume-numbered-batch.ts";
import type { EngineContext } from "./context.ts";
import type { CaptureDefinition, OperationOptions, PhasesDefinition, TransactionDefinition } from "./definition.ts";
import { type DirectRun, directRequest } from "./direct-request.ts";
import { emitterOf } from "./emitter.ts";
import { execute } from "./execute.ts";
import { keyState } from "./key-state.ts";
import { createLifecycle, type Lifecycle } from "./lifecycle.ts";
import { checkMessageSettings } from "./messages.ts";
import { observedDeliveries, observedDelivery } from "./observed-delivery.ts";
import { tellingMessages } from "./observed-messages.ts";
import { observedRequest, tellRefused } from "./observed-run.ts";
import type { Engine, Operation } from "./operation.ts";
import { withPoints } from "./points.ts";
import { createRegistry, type Registry } from "./registry.ts";
import { inMemory, type RunResult } from "./run-result.ts";
import { type OncekeyOptions, settingsOf } from "./settings.ts";
import { createSharing } from "./sharing.ts";
import { checkStorageSettings } from "./storage-check.ts";
import type { Instance } from "./sweeping.ts";
import { executeWithin } from "./within.ts";

/** An instance: operations are defined on it, then bound to routes, queues, or run directly. */
export interface Oncekey<Tx> extends Instance {
  /** Defines an operation whose business rows and stored answer are one transaction. */
  transaction<const S extends InputSchemas = Record<never, never>>(
    definition: TransactionDefinition<Tx, S>,
  ): Operation<"transaction">;
  /** Defines an operation with recovery points, for work that calls other systems. */
  phases<const S extends InputSchemas = Record<never, never>>(definition: PhasesDefinition<Tx, S>): Operation<"phases">;
  /** Defines an operation around an existing handler, which the binding supplies. */
  capture<const S extends InputSchemas = Record<never, never>>(definition: CaptureDefinition<S>): Operation<"capture">;
  /**
   * Runs an operation without HTTP: a union, never an answer. Raises what the handler threw, `idempotency_request_invalid`,
   * and `oncekey_transaction_unusable` for a `transaction` that was handed in and cannot be used.
   */
  run(operation: Operation<"transaction" | "phases">, request: DirectRun<Tx>): Promise<RunResult>;
  /**
   * Takes one delivery of a queue message or webhook in: runs the handler in the transaction that remembers the delivery,
   * unless it is remembered already. Raises what the handler threw (rolled back), and `oncekey_delivery_invalid`.
   */
  consume<Value>(
    delivery: IncomingDelivery,
    handler: (step: DeliveryStep<Tx>) => Promise<Value>,
    options?: ConsumeOptions,
  ): Promise<ConsumeResult<Value>>;
  /**
   * Takes a batch in, all of its new deliveries in one transaction. One result a delivery, in their order; where the
   * handler throws nothing of the batch is remembered. Raises as {@link consume}.
   */
  consumeBatch<D extends IncomingDelivery>(
    deliveries: readonly D[],
    handler: (step: BatchStep<Tx, D>) => Promise<void>,
    options?: ConsumeOptions,
  ): Promise<readonly ConsumeResult<void>[]>;
  /** Takes a message in that its producer numbered: remembers one number a producer, however many messages. Raises as {@link consume}. */
  consumeNumbered<Value>(
    message: NumberedMessage,
    handler: (step: DeliveryStep<Tx>) => Promise<Value>,
    options?: Pick<ConsumeOptions, "maxDurationMs" | "waitMs">,
  ): Promise<SequenceResult<Value>>;
  /**
   * Takes a batch in that its producer numbered, by the rules of Kafka's idempotent producers: a repetition of one of its
   * last five gives that one's value, and what cannot be told from one never runs. Raises as {@link consume}, and
   * `oncekey_value_unsupported`.
   */
  consumeNumberedBatch<Value>(
    batch: NumberedBatch,
    handler: (step: DeliveryStep<Tx>) => Promise<Value>,
    options?: NumberedBatchOptions,
  ): Promise<NumberedBatchResult<Value>>;
  /**
   * Checks store, schema, times and operations; nothing runs before. Raises `oncekey_config_invalid`,
   * `oncekey_operation_duplicate`, `oncekey_schema_missing`, `oncekey_schema_skew`, or the store's failure.
   */
  start(): Promise<void>;
  /** Lets running operations finish for at most `graceMs` (default 10,000); new ones are refused. Tells whether all finished. */
  close(options?: { readonly graceMs?: number }): Promise<{ readonly drained: boolean }>;
}

/** Creates an instance that knows no dialect's defaults. Nothing is checked or connected before `start()`. */
export function createEngine<Tx>(options: OncekeyOptions<Tx>): Oncekey<Tx> {
  const context = contextOf(options);
  const registry = createRegistry();
  const lifecycle = createLifecycle(context.settings.clock);
  const engine = engineOf(context, registry, lifecycle);
  const definition = (given: unknown) => {
    if (lifecycle.phase !== "new") throw definedLate();
    return given as OperationOptions<InputSchemas>;
  };
  return {
    transaction: (given) => registry.define("transaction", definition(given), engine),
    phases: (given) => registry.define("phases", definition(given), engine),
    capture: (given) => registry.define("capture", definition(given), engine),
    async run(operation, request) {
      lifecycle.admit();
      refuseCapture(operation);
      const known = registry.known(operation);
      const asked = directRequest(context, known, request);
      const { transaction } = request;
      if (transaction === undefined) return inMemory(await engine.execute(operation, asked));
      const run = (observed: EngineContext) =>
        lifecycle.tracked(() => executeWithin(observed, known, asked, transaction));
      return inMemory(await observedRequest(context, known, asked, run));
    },
    consume: (delivery, handler, consuming = {}) =>
      observedDelivery(context, delivery, () =>
        lifecycle.tracked(() => consume(context, delivery, handler as never, consuming)),
      ),
    consumeBatch: (deliveries, handler, consuming = {}) =>
      observedDeliveries(context, deliveries, () =>
        lifecycle.tracked(() => consumeBatch(context, deliveries, handler as never, consuming)),
      ),
    consumeNumbered: (message, handler, consuming = {}) =>
      observedDelivery(context, message, () =>
        lifecycle.tracked(() => consumeNumbered(context, message, handler as never, consuming)),
      ),
    consumeNumberedBatch: (batch, handler, consuming = {}) =>
      observedDelivery(context, batch, () =>
        lifecycle.tracked(() => consumeNumberedBatch(context, batch, handler as never, consuming)),
      ),
    async start() {
      if (lifecycle.phase === "closed") lifecycle.admit();
      checkTimes(context.settings);
      checkMessageSettings(context.settings);
      checkStore(context.store);
      checkStorageSettings(context.settings, context.store.traits, registry.all());
      registry.check(context);
      await context.store.start();
      warnOfCaptures(registry.all());
      lifecycle.started();
    },
    close: async ({ graceMs = 10_000 } = {}) => ({ drained: await lifecycle.close(graceMs) }),
    internals: { context, registry, lifecycle },
  };
}

/** What bindings get of the instance. */
function engineOf(context: EngineContext, registry: Registry, lifecycle: Lifecycle): Engine {
  return {
    settings: context.settings,
    ring: context.ring,
    execute: (operation, request) =>
      observedRequest(context, operation, request, (observed) =>
        lifecycle.tracked(() => execute(observed, registry.known(operation), request)),
      ),
    refused: (operation, error) => tellRefused(context, operation, error),
    state: (operation, id) => lifecycle.tracked(() => keyState(context, registry.known(operation), id)),
    bound: (operation) => void registry.known(operation),
  };
}

function contextOf<Tx>(options: OncekeyOptions<Tx>): EngineContext {
  const settings = settingsOf(options as OncekeyOptions<never>);
  const { onPoint } = options;
  const store = options.store as Store<unknown>;
  const pointed = onPoint === undefined ? store : withPoints(store, onPoint);
  const emit = emitterOf(settings);
  return {
    // What is no store is left for start() to refuse.
    store: emit === null || typeof store?.transaction !== "function" ? pointed : tellingMessages(pointed, emit),
    emit,
    observed: null,
    settings,
    ring: fingerprintRing(settings.fingerprintSecrets),
    cipher: cipherOf(settings.encryptionKeys),
    sharing: createSharing(settings.clock, settings),
    point: async (name) => onPoint?.(name),
  };
}

function checkStore(store: Store<unknown>): void {
  if (typeof store?.start === "function" && typeof store.transaction === "function") return;
  throw new OncekeyError(
    "oncekey_config_invalid",
    "createOncekey needs a store, such as postgresStore(fromPg(pool)). Nothing was started.",
  );
}

function definedLate(): OncekeyError {
  return new OncekeyError(
    "oncekey_config_invalid",
    "Operations are defined before start(), so that start() can check all of them. Nothing was defined.",
  );
}

function refuseCapture({ runKind, name }: Operation): void {
  if (runKind !== "capture") return;
  throw new OncekeyError(
    "oncekey_config_invalid",
    `Operation ${name} captures a handler that only its binding has. Nothing was run. Bind it, or make it a transaction or phases operation.`,
  );
}

function warnOfCaptures(operations: readonly Operation[]): void {
  for (const { runKind, name, definition } of operations) {
    if (runKind !== "capture") continue;
    const { reconcile, afterCrash } = definition as Partial<CaptureDefinition<InputSchemas>>;
    if (afterCrash === "runAgain") {
      warn("ONCEKEY_AT_LEAST_ONCE", `${name} runs again after a crash: its effect is at-least-once.`);
    } else if (reconcile === undefined) {
      warn("ONCEKEY_NO_RECONCILE", `${name} has no reconcile: after a crash only an operator can settle its key.`);
    }
  }
}

function warn(code: string, message: string): void {
  process.emitWarning(message, { code, type: "OncekeyWarning" });
}
