import { AsyncLocalStorage } from "node:async_hooks";
import { OncekeyError } from "../core/errors.ts";
import type { EngineContext } from "./context.ts";
import type { Origin } from "./definition.ts";
import { type Lease, LeaseLost } from "./lease.ts";

/** The captured attempt that the current code runs in. */
export interface OwnedAttempt {
  readonly context: EngineContext;
  readonly lease: Lease;
  readonly origin: Origin;
}

/** Carries the attempt through the handler's own async flow. */
export const ownedAttempt = new AsyncLocalStorage<OwnedAttempt>();

/**
 * For a captured handler: who asked, and under which key. What it writes beside its rows (`id`, say) is what `reconcile`
 * finds them by. Raises `oncekey_operation_unknown` outside a captured handler.
 */
export function currentOrigin(): Origin {
  return current("currentOrigin").origin;
}

/**
 * For a captured handler's own transaction: locks the entry in `tx` and makes sure that this attempt still owns it, so
 * that a handler which lost its lease cannot commit. Call it last, directly before the commit.
 * Raises {@link LeaseLost} (let it roll the transaction back) and `oncekey_operation_unknown` outside a captured handler.
 */
export async function assertOwned(tx: unknown): Promise<void> {
  const { context, lease } = current("assertOwned");
  lease.check();
  if (!(await context.store.owns(tx, lease.id, lease.fence))) throw new LeaseLost("another attempt took over");
}

function current(name: string): OwnedAttempt {
  const attempt = ownedAttempt.getStore();
  if (attempt !== undefined) return attempt;
  throw new OncekeyError(
    "oncekey_operation_unknown",
    `${name}() was called outside a captured handler. Nothing was changed. Call it in the handler's own async flow.`,
  );
}
