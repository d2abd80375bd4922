import type { RunKind, StoredEntry } from "../core/entry.ts";
import { OncekeyError } from "../core/errors.ts";
import type { InputSchemas } from "../core/input.ts";
import { checkOperation, type PolicyOperation } from "../core/policy.ts";
import { claimCommitOf, type EngineContext, maxAttemptsOf, maxDurationOf, retentionOf } from "./context.ts";
import type { CaptureDefinition, OperationOptions, PhasesDefinition } from "./definition.ts";
import { checkDefinition } from "./definition-check.ts";
import type { Engine, Operation, OperationRules } from "./operation.ts";
import type { Settings } from "./settings.ts";

/** The operations of one instance. */
export interface Registry {
  define<Kind extends RunKind>(
    runKind: Kind,
    definition: OperationOptions<InputSchemas>,
    engine: Engine,
  ): Operation<Kind>;
  /** The operation itself; raises `oncekey_operation_unknown` for one of another instance. */
  known(operation: Operation): Operation;
  /** The operation an entry belongs to, by its name or a former one; `undefined` where this process has none. */
  of(entry: StoredEntry): Operation | undefined;
  all(): readonly Operation[];
  /** Raises `oncekey_operation_duplicate` and `oncekey_config_invalid`. */
  check(context: EngineContext): void;
}

/** Creates an empty registry. */
export function createRegistry(): Registry {
  const operations: Operation[] = [];
  return {
    define(runKind, definition, engine) {
      const { name, version } = definition;
      const rules = rulesOf(definition, engine.settings);
      const operation = {
        runKind,
        name,
        version,
        identityName: definition.aliases?.[0] ?? name,
        rules,
        definition,
        engine,
      };
      operations.push(operation);
      return operation;
    },
    known(operation) {
      if (operations.includes(operation)) return operation;
      throw new OncekeyError(
        "oncekey_operation_unknown",
        "The operation belongs to another instance. Nothing was run. Define it on the instance that runs it.",
      );
    },
    of: (entry) => operations.find((operation) => namesOf(operation).includes(entry.operation)),
    all: () => operations,
    check(context) {
      checkNamesDiffer(operations);
      for (const operation of operations) {
        checkDefinition(operation);
        checkOperation(policyView(operation, context), context.settings, context.store.traits);
      }
    },
  };
}

function rulesOf(
  { compare, keySpace, afterFailure }: OperationOptions<InputSchemas>,
  settings: Settings,
): OperationRules {
  return {
    compare: compare ?? settings.compare,
    keySpace: keySpace ?? settings.keySpace,
    afterFailure: afterFailure ?? settings.afterFailure,
  };
}

/** An operation's name and its former ones. */
export function namesOf({ name, definition }: Operation): string[] {
  return [...new Set([name, ...(definition.aliases ?? [])])];
}

function checkNamesDiffer(operations: readonly Operation[]): void {
  const taken = new Set<string>();
  for (const name of operations.flatMap(namesOf)) {
    if (taken.has(name)) {
      throw new OncekeyError(
        "oncekey_operation_duplicate",
        `Two operations are called ${JSON.stringify(name)} (aliases count). Nothing was started. Rename one; names are part of every key's identity.`,
      );
    }
    taken.add(name);
  }
}

function policyView(operation: Operation, { settings }: EngineContext): PolicyOperation {
  const { runKind, name, version, rules, definition } = operation;
  const { onStoreDown } = definition as Partial<CaptureDefinition<InputSchemas>>;
  const { dedupesForMs } = definition as Partial<PhasesDefinition<unknown, InputSchemas>>;
  return {
    runKind,
    name,
    version,
    aliases: definition.aliases ?? [],
    maxDurationMs: maxDurationOf(operation),
    maxAttempts: maxAttemptsOf(operation),
    retentionMs: retentionOf(operation),
    waitMs: definition.waitMs ?? settings.waitMs,
    replayHeaders: definition.replayHeaders ?? [],
    claimCommit: claimCommitOf(operation),
    dedupesForMs,
    afterFailure: rules.afterFailure,
    onStoreDown: onStoreDown ?? "refuse",
  };
}
