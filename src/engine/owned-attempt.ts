import { AsyncLocalStorage } from "node:async_hooks";
import { OncekeyError } from "../core/errors.ts";
import type { NewMessage } from "../core/message.ts";
import type { Owned } from "./claim.ts";
import type { EngineContext } from "./context.ts";
import type { Origin, Send, SendOptions } from "./definition.ts";
import { LeaseLost } from "./lease.ts";
import { entrySender, messagesFrom } from "./messages.ts";
import { originOf } from "./origin.ts";

/** The captured attempt that the current code runs in. */
export interface OwnedAttempt extends Pick<Owned, "lease"> {
  readonly context: EngineContext;
  readonly origin: Origin;
  /** Makes the attempt's messages, counting them. */
  message(...sent: Parameters<Send>): NewMessage;
}

/** Carries the attempt through the handler's own async flow. */
export const ownedAttempt = new AsyncLocalStorage<OwnedAttempt>();

/** An attempt as its handler may ask for it. */
export function attemptOf(context: EngineContext, { entry, lease }: Pick<Owned, "entry" | "lease">): OwnedAttempt {
  const message = messagesFrom(context, entrySender(context, entry), `capture:${entry.attempt}`);
  return { context, lease, origin: originOf(entry), message };
}

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
 * Raises `LeaseLost` (let it roll the transaction back) and `oncekey_operation_unknown` outside a captured handler.
 */
export async function assertOwned(tx: unknown): Promise<void> {
  const { context, lease } = current("assertOwned");
  lease.check();
  if (!(await context.store.owns(tx, lease.id, lease.fence))) throw new LeaseLost("another attempt took over");
}

/**
 * For a captured handler's own transaction: writes an outbox message in `tx`, which then goes out if and only if that
 * transaction commits. The fence does not reach it: call {@link assertOwned} as well. Raises as `send` does, and
 * `oncekey_operation_unknown` outside a captured handler.
 */
export async function sendInside(tx: unknown, topic: string, payload: unknown, options?: SendOptions): Promise<void> {
  const { context, message } = current("sendInside");
  await context.store.send(tx, message(topic, payload, options));
}

function current(name: string): OwnedAttempt {
  const attempt = ownedAttempt.getStore();
  if (attempt !== undefined) return attempt;
  throw new OncekeyError(
    "oncekey_operation_unknown",
    `${name}() was called outside a captured handler. Nothing was changed. Call it in the handler's own async flow.`,
  );
}
