import type { RunKind, StoredEntry } from "../core/entry.ts";
import { OncekeyError } from "../core/errors.ts";
import { fingerprintRing } from "../core/fingerprint.ts";
import type { InputSchemas } from "../core/input.ts";
import { checkOperation, checkTimes } from "../core/policy.ts";
import type { Store } from "../core/store.ts";
import { pause } from "../core/clock.ts";
import { type EngineContext, maxDurationOf } from "./context.ts";
import { directRequest, type DirectRun } from "./direct-request.ts";
import type { Engine } from "./engine.ts";
import { execute } from "./execute.ts";
import type {
  CaptureDefinition,
  Operation,
  OperationOptions,
  PhasesDefinition,
  TransactionDefinition,
} from "./operation.ts";
import { resumePhases } from "./phases.ts";
import { withPoints } from "./points.ts";
import type { RunResult } from "./run-result.ts";
import { type OncekeyOptions, settingsOf } from "./settings.ts";
import { createSharing } from "./sharing.ts";

/** An instance: operations are defined on it, then bound to routes, queues, or run directly. */
export interface Oncekey<Tx> {
  /** Defines an operation whose business rows and stored answer are one transaction. */
  transaction<const S extends InputSchemas = Record<never, never>>(
    definition: TransactionDefinition<Tx, S>,
  ): Operation<"transaction">;
  /** Defines an operation with recovery points, for work that calls other systems. */
  phases<const S extends InputSchemas = Record<never, never>>(definition: PhasesDefinition<Tx, S>): Operation<"phases">;
  /** Defines an operation around an existing handler, which the binding supplies. */
  capture<const S extends InputSchemas = Record<never, never>>(definition: CaptureDefinition<S>): Operation<"capture">;
  /** Runs an operation without HTTP: a union, never an answer. Raises what the handler threw, and `idempotency_request_invalid`. */
  run(operation: Operation<"transaction" | "phases">, request: DirectRun): Promise<RunResult>;
  /**
   * Checks store, schema, times and operations; nothing runs before. Raises `oncekey_config_invalid`,
   * `oncekey_operation_duplicate`, `oncekey_schema_missing`, `oncekey_schema_skew`, or the store's failure.
   */
  start(): Promise<void>;
  /** Lets running operations finish for at most `graceMs` (default 10,000); new ones are refused. Tells whether all finished. */
  close(options?: { readonly graceMs?: number }): Promise<{ readonly drained: boolean }>;
  /** @internal What the sweeper works with. */
  readonly internals: OncekeyInternals;
}

/** @internal */
export interface OncekeyInternals {
  readonly context: EngineContext;
  operations(): readonly Operation[];
  /** Runs work that counts as an active operation for `close()`. */
  tracked<T>(work: () => Promise<T>): Promise<T>;
  isOpen(): boolean;
}

type Phase = "new" | "started" | "closed";

/** Creates an instance. Nothing is checked or connected before `start()`. */
export function createOncekey<Tx>(options: OncekeyOptions<Tx>): Oncekey<Tx> {
  const settings = settingsOf(options as OncekeyOptions<never>);
  const ring = fingerprintRing(settings.fingerprintSecrets);
  const { onPoint } = options;
  const raw = options.store as Store<unknown>;
  const store = onPoint === undefined ? raw : withPoints(raw, onPoint);
  const sharing = createSharing(settings.clock, settings);
  const context: EngineContext = { store, settings, ring, sharing, point: async (name) => onPoint?.(name) };
  const operations: Operation[] = [];
  let phase: Phase = "new";
  let active = 0;

  const tracked = async <T>(work: () => Promise<T>): Promise<T> => {
    admit(phase);
    active++;
    try {
      return await work();
    } finally {
      active--;
    }
  };
  const engine: Engine = {
    settings,
    ring,
    execute: (operation, request) => tracked(() => execute(context, known(operation), request)),
    bound: (operation) => void known(operation),
  };
  const known = (operation: Operation): Operation => {
    if (operations.includes(operation)) return operation;
    throw new OncekeyError("oncekey_operation_unknown", "The operation belongs to another instance. Nothing was run. Define it on the instance that runs it.");
  };
  const define = <Kind extends RunKind>(runKind: Kind, definition: OperationOptions<InputSchemas>): Operation<Kind> => {
    if (phase !== "new") {
      throw new OncekeyError("oncekey_config_invalid", "Operations are defined before start(), so that start() can check all of them. Nothing was defined.");
    }
    const { name, version } = definition;
    const operation = { runKind, name, version, identityName: definition.aliases?.[0] ?? name, definition, engine };
    operations.push(operation);
    return operation;
  };

  return {
    transaction: (definition) => define("transaction", definition as unknown as OperationOptions<InputSchemas>),
    phases: (definition) => define("phases", definition as unknown as OperationOptions<InputSchemas>),
    capture: (definition) => define("capture", definition),
    run: async (operation, request) => {
      admit(phase);
      return engine.execute(operation, directRequest(context, known(operation), request));
    },
    async start() {
      if (phase === "closed") admit(phase);
      checkTimes(settings);
      checkOperations(operations, context);
      await raw.start();
      warnOfCaptures(operations);
      phase = "started";
    },
    async close({ graceMs = 10_000 } = {}) {
      phase = "closed";
      const endAtMs = settings.clock.monotonicMs() + graceMs;
      while (active > 0 && settings.clock.monotonicMs() < endAtMs) await pause(settings.clock, 20);
      return { drained: active === 0 };
    },
    internals: { context, operations: () => operations, tracked, isOpen: () => phase === "started" },
  };
}

function admit(phase: Phase): void {
  if (phase === "new") {
    throw new OncekeyError("oncekey_not_started", "The instance has not been started. Nothing was run. Await once.start() before serving.");
  }
  if (phase === "closed") {
    throw new OncekeyError("oncekey_closed", "The instance is closed. Nothing was run. Send the request to another instance with the same key.");
  }
}

function checkOperations(operations: readonly Operation[], context: EngineContext): void {
  const taken = new Set<string>();
  for (const operation of operations) {
    for (const name of new Set([operation.name, ...(operation.definition.aliases ?? [])])) {
      if (taken.has(name)) {
        throw new OncekeyError("oncekey_operation_duplicate", `Two operations are called ${JSON.stringify(name)} (aliases count). Nothing was started. Rename one; names are part of every key's identity.`);
      }
      taken.add(name);
    }
    checkOperation(policyView(operation, context), context.settings, context.store.traits);
  }
}

function policyView({ runKind, name, version, definition }: Operation, { settings }: EngineContext) {
  const { claimCommit = "synchronous", onStoreDown = "refuse" } = definition as Partial<CaptureDefinition<InputSchemas>>;
  return {
    runKind,
    name,
    version,
    aliases: definition.aliases ?? [],
    maxDurationMs: maxDurationOf({ definition } as Operation),
    retentionMs: definition.retentionMs ?? settings.retentionMs,
    waitMs: definition.waitMs ?? settings.waitMs,
    replayHeaders: definition.replayHeaders ?? [],
    claimCommit,
    onStoreDown,
  };
}

function warnOfCaptures(operations: readonly Operation[]): void {
  for (const { runKind, name, definition } of operations) {
    if (runKind !== "capture") continue;
    const { reconcile, afterCrash } = definition as Partial<CaptureDefinition<InputSchemas>>;
    if (afterCrash === "runAgain") {
      process.emitWarning(`${name} runs again after a crash: its effect is at-least-once.`, { code: "ONCEKEY_AT_LEAST_ONCE" });
    } else if (reconcile === undefined) {
      process.emitWarning(`${name} has no reconcile: after a crash only an operator can settle its key.`, { code: "ONCEKEY_NO_RECONCILE" });
    }
  }
}

/**
 * Takes up one lapsed entry without a client: resumes a `phases` entry whose input was stored, marks a captured one
 * `needs_recovery`. `left`: nothing was done (somebody was faster, or only a retry can go on). Raises what the
 * operation's code threw.
 */
export async function sweepEntry(once: Oncekey<never>, entry: StoredEntry): Promise<"resumed" | "marked" | "left"> {
  const { context, operations, tracked } = once.internals;
  const operation = operations().find(({ name, definition }) => [name, ...(definition.aliases ?? [])].includes(entry.operation));
  if (operation === undefined || operation.runKind !== entry.runKind) return "left";
  if (operation.runKind === "capture") {
    if ((operation.definition as CaptureDefinition<InputSchemas>).afterCrash === "runAgain") return "left";
    return (await context.store.markUnknown(entry.id, entry.fence, "owner_lost", null)) ? "marked" : "left";
  }
  if (entry.input === null) return "left";
  const turn = await tracked(() => resumePhases(context, operation, null, entry));
  return turn.kind === "done" ? "resumed" : "left";
}
