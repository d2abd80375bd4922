import type { StoredEntry } from "../core/entry.ts";
import type { InputSchemas } from "../core/input.ts";
import type { SweepTarget } from "../core/store.ts";
import type { EngineContext } from "./context.ts";
import type { CaptureDefinition } from "./definition.ts";
import type { Lifecycle } from "./lifecycle.ts";
import { resumePhases } from "./phases.ts";
import { namesOf, type Registry } from "./registry.ts";

/** What the sweeper needs of an instance. */
export interface SweepAccess {
  readonly context: EngineContext;
  readonly registry: Registry;
  readonly lifecycle: Lifecycle;
}

/** The operations whose lapsed entries this process may take up. */
export function sweepTargets({ registry }: SweepAccess): SweepTarget[] {
  return registry.all().flatMap((operation) => {
    const { runKind, version } = operation;
    if (runKind === "transaction") return [];
    const { storeInput, afterCrash } = operation.definition as { storeInput?: boolean; afterCrash?: string };
    if (storeInput === false || afterCrash === "runAgain") return [];
    return namesOf(operation).map((name) => ({ operation: name, runKind, operationVersion: version }));
  });
}

/**
 * Takes up one lapsed entry without a client: resumes a `phases` entry whose input was stored, marks a captured one
 * `needs_recovery`. `left`: nothing was done (somebody was faster, or only a retry can go on). Raises what the
 * operation's code threw.
 */
export async function sweepEntry(access: SweepAccess, entry: StoredEntry): Promise<"resumed" | "marked" | "left"> {
  const { context, registry, lifecycle } = access;
  const operation = registry.of(entry);
  if (operation === undefined || operation.runKind !== entry.runKind) return "left";
  if (operation.runKind === "capture") {
    if ((operation.definition as CaptureDefinition<InputSchemas>).afterCrash === "runAgain") return "left";
    return (await context.store.markUnknown(entry.id, entry.fence, "owner_lost", null)) ? "marked" : "left";
  }
  if (entry.input === null) return "left";
  const turn = await lifecycle.tracked(() => resumePhases(context, operation, null, entry));
  return turn.kind === "done" ? "resumed" : "left";
}
