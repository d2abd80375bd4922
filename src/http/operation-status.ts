import { type ErrorCode, OncekeyError } from "../core/errors.ts";
import { identityOf } from "../core/identity.ts";
import type { HeaderLine } from "../core/outcome.ts";
import { checkScope, type Scope } from "../core/scope.ts";
import type { KeyState } from "../engine/key-state.ts";
import type { Operation } from "../engine/operation.ts";
import { unasked } from "./profile-request.ts";
import { profileNamed } from "./profiles/index.ts";
import { headKey, type KeyDemand, memberKey } from "./request-key.ts";
import { errorAnswer } from "./result.ts";

/** Who asks about which key. */
export interface StatusRequest {
  /** From authentication, as the binding's `scope` gives it: only its own caller is told of a key. */
  readonly scope: Scope;
  /** The key as it was sent: the header's value, or every line of it. */
  readonly key: string | readonly string[] | null | undefined;
  /** The region, zone or queue within which the dialect's keys count, where it has such. Default: everywhere. */
  readonly partition?: string | null;
}

/** An answer, for any framework to send. */
export interface StatusAnswer {
  readonly status: number;
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

const RETRY_AFTER_S: { readonly [S in KeyState]?: number } = { in_progress: 1, unknown: 5 };

/**
 * A handler for clients that want to know where a key of the operation stands, without sending its request again:
 * `{"state":"in_progress"}`, `succeeded`, `failed` or `unknown` with 200, `none` with 404. Another caller's key is none.
 * Runs and changes nothing. Refusals are answers as elsewhere; raises `oncekey_scope_invalid` and `oncekey_not_started`.
 */
export function operationStatus(operation: Operation): (asked: StatusRequest) => Promise<StatusAnswer> {
  const { settings } = operation.engine;
  const profile = profileNamed(settings.profile);
  const demand: KeyDemand = { rule: profile.key, maxLength: settings.maxKeyLength, required: true };
  operation.engine.bound(operation, { requiresKey: true });
  return async ({ scope, key, partition = null }) => {
    try {
      const reach = { keySpace: operation.rules.keySpace, partition };
      const identity = identityOf(checkScope(scope), operation.identityName, keyOf(demand, key), reach);
      const state = await operation.engine.state(operation, identity.id);
      return answerOf(state);
    } catch (error) {
      const refusal = errorAnswer(profile, error, unasked);
      if (refusal === null) throw error;
      return {
        status: refusal.status,
        headers: Object.fromEntries(refusal.headers as HeaderLine[]),
        body: new TextDecoder().decode(refusal.body as Uint8Array),
      };
    }
  };
}

function answerOf(state: KeyState): StatusAnswer {
  const retryAfter = RETRY_AFTER_S[state];
  return {
    status: state === "none" ? 404 : 200,
    headers: {
      "content-type": "application/json",
      "cache-control": "no-store",
      ...(retryAfter === undefined ? {} : { "retry-after": String(retryAfter) }),
    },
    body: JSON.stringify({ state }),
  };
}

/** The key by the dialect's own rules, so that what is asked about is what was sent. */
function keyOf(demand: KeyDemand, given: StatusRequest["key"]): string {
  const lines = given == null ? [] : [given].flat();
  const key =
    headKey(demand, { headerLines: () => lines }) ??
    memberKey(demand, { everyMember: (name) => (isFirstName(demand, name) ? lines : []) });
  if (key !== null) return key;
  throw new OncekeyError("idempotency_key_missing" satisfies ErrorCode, "Say which key. Nothing was run or changed.");
}

function isFirstName({ rule: { place } }: KeyDemand, name: string): boolean {
  return place.in === "member" && place.names[0] === name;
}
