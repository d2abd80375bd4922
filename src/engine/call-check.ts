import { OncekeyError } from "../core/errors.ts";
import type { InputSchemas } from "../core/input.ts";
import type { KeyForm } from "../core/intent.ts";
import { formOf, type RecoverByDedupe } from "../core/recover.ts";
import { claimCommitOf } from "./context.ts";
import type { CallOptions, PhasesDefinition } from "./definition.ts";
import type { Operation } from "./operation.ts";

/** The time alone is a form as well; beside another one it is a hint for operators. */
const FORMS = ["dedupes", "cancel", "atMostOnce"];
const KEY_FORMS: readonly KeyForm[] = ["base64url", "uuid", "hex"];
const LONGEST_MS = 2 ** 31 - 1;

type Given = Readonly<Record<string, unknown>> | undefined;

/**
 * Refuses a call that could not be settled after a crash, before anything of it is sent. Types say most of this; a NaN,
 * or a settle time within which the call itself may still be under way, they cannot see. Raises `oncekey_recover_missing`.
 */
export function checkCall(name: string, options: CallOptions<unknown, unknown>, operation: Operation): void {
  const recover = options.recover as unknown as Given;
  const forms = FORMS.filter((form) => recover?.[form] !== undefined);
  if (forms.length > 1 || (forms.length === 0 && recover?.settlesWithinMs === undefined)) {
    throw unsound(name, "needs exactly one of: dedupes, find with cancel, find with settlesWithinMs, atMostOnce");
  }
  const { timeoutMs, keyForm = "base64url" } = options;
  if (!KEY_FORMS.includes(keyForm)) throw unsound(name, `needs a keyForm out of ${KEY_FORMS.join(", ")}`);
  if (!(timeoutMs > 0 && timeoutMs <= LONGEST_MS)) throw unsound(name, `needs timeoutMs from 1 to ${LONGEST_MS}`);
  checkForm(name, recover ?? {}, timeoutMs);
  checkDeclared(name, options, operation);
}

/** What start() was told of all calls must be so of this one: of a lost claim nobody knows anything else. */
function checkDeclared(name: string, { recover }: CallOptions<unknown, unknown>, operation: Operation): void {
  if (claimCommitOf(operation) === "synchronous" || formOf(recover) !== "dedupes") return;
  const { dedupesForMs = 0 } = operation.definition as Partial<PhasesDefinition<unknown, InputSchemas>>;
  const { dedupes } = recover as RecoverByDedupe<unknown, unknown>;
  if (dedupesForMs > 0 && dedupes.forMs >= dedupesForMs) return;
  throw unsound(name, `needs dedupes.forMs as long as its operation's dedupesForMs (${dedupesForMs}; 0: none dedupes)`);
}

function checkForm(name: string, recover: NonNullable<Given>, timeoutMs: number): void {
  const { dedupes, cancel, atMostOnce, settlesWithinMs, find } = recover as Record<string, unknown>;
  if (dedupes !== undefined && !Number.isFinite((dedupes as { forMs?: number }).forMs)) {
    throw unsound(name, "needs dedupes.forMs in milliseconds");
  }
  const asks = cancel !== undefined || (dedupes === undefined && atMostOnce === undefined);
  if (asks && typeof find !== "function") throw unsound(name, "needs find");
  if (settlesWithinMs === undefined) return;
  if (Number.isFinite(settlesWithinMs) && (settlesWithinMs as number) > timeoutMs) return;
  throw unsound(name, "needs settlesWithinMs above timeoutMs: until then the call itself may still be under way");
}

function unsound(name: string, what: string): OncekeyError {
  return new OncekeyError("oncekey_recover_missing", `Call ${name} ${what}. Nothing was sent.`);
}
