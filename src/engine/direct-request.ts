import { usableCorrelation } from "../core/correlation.ts";
import { OncekeyError } from "../core/errors.ts";
import { type Compare, type FingerprintForm, type RequestProof, uncomparedContent } from "../core/fingerprint.ts";
import { identityOf } from "../core/identity.ts";
import { type RawInput, type ValidatedInput, validateInput } from "../core/input.ts";
import { parseKey } from "../core/key.ts";
import type { OpenedTransaction } from "../core/opened-transaction.ts";
import { inputParts } from "../core/request-form.ts";
import { checkScope, type Scope } from "../core/scope.ts";
import type { EngineContext } from "./context.ts";
import type { Operation } from "./operation.ts";
import type { OperationRequest } from "./request.ts";

/** A run without HTTP: whose key, which key, and the input's parts. */
export interface DirectRun<Tx = unknown> {
  readonly scope: Scope;
  readonly key: string;
  /** The parts of the input. Default: none. */
  readonly input?: RawInput;
  /** Stored for resumes without a client: ids, never secrets. */
  readonly context?: unknown;
  /** What ties the run to its caller's logs (a `traceparent`): 1 to 255 visible ASCII characters, else it is ignored. */
  readonly correlation?: string | null;
  /** How long to wait for a running duplicate, in milliseconds. Default: the operation's. */
  readonly waitMs?: number;
  /**
   * A transaction that you opened and will end (`fromTransaction(tx)`), for `transaction` operations: the run happens in it
   * and waits for nobody. Default: one of the store's own.
   */
  readonly transaction?: OpenedTransaction<Tx>;
}

/** What a run without HTTP is read by. */
export type DirectContext = Pick<EngineContext, "ring" | "settings">;

/**
 * The request behind `once.run`. Without wire bytes it is always compared by its validated input. Raises
 * `idempotency_key_missing`, `idempotency_key_invalid`, `oncekey_scope_invalid`.
 */
export function directRequest(context: DirectContext, operation: Operation, run: DirectRun): OperationRequest {
  const { definition, identityName, rules } = operation;
  const compare: Compare = rules.compare === "none" ? "none" : "input";
  let validated: Promise<ValidatedInput> | undefined;
  const validate = () => (validated ??= validateInput(definition.input ?? {}, run.input ?? {}, true));
  const fingerprint = async (form: FingerprintForm) => {
    // An entry made from wire bytes can never be matched by a run that has none: a digest of nothing equals nothing.
    if (form.compare === "wire") return new Uint8Array();
    const parts = async () => inputParts({ operation: identityName, ...(await validate()) });
    if (form.compare === "input") return context.ring.fingerprint(form, await parts());
    // Where nothing is compared, a duplicate that does not even validate is one all the same.
    const content = context.ring.fingerprint(form, await parts().catch(() => []));
    return uncomparedContent(context.ring.fingerprint(form, [identityName]), content);
  };
  const proof: RequestProof = { compare, ring: context.ring, wireDigest: null, fingerprint };
  return {
    identity: identityOf(checkScope(run.scope), identityName, directKey(context, run.key), {
      keySpace: rules.keySpace,
    }),
    proof,
    input: async () => (await validate()).input,
    context: run.context ?? null,
    correlation: usableCorrelation(run.correlation),
    waitMs: checkedWait(run.waitMs ?? definition.waitMs ?? context.settings.waitMs),
  };
}

/** A timer takes no more than 2^31 − 1 ms: a longer wait would end at once. */
function checkedWait(waitMs: number): number {
  if (Number.isFinite(waitMs) && waitMs >= 0 && waitMs < 2 ** 31) return waitMs;
  throw new OncekeyError(
    "oncekey_config_invalid",
    "waitMs must be from 0 to 2147483647 milliseconds. Nothing was run.",
  );
}

function directKey({ settings }: DirectContext, key: string): string {
  const parsed = parseKey([key], { maxLength: settings.maxKeyLength });
  if (parsed.kind === "key") return parsed.key;
  const why = parsed.kind === "invalid" ? `malformed: ${parsed.why}` : "missing";
  throw new OncekeyError(
    parsed.kind === "invalid" ? "idempotency_key_invalid" : "idempotency_key_missing",
    `The key is ${why}. Nothing was run or stored.`,
  );
}
