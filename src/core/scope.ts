import { OncekeyError } from "./errors.ts";

/**
 * Whose key it is. Both members are required and come from authentication, never from what the client may choose;
 * they must stay the same when credentials rotate, or an honest retry would run a second time.
 */
export interface Scope {
  readonly tenant: string;
  /** The tenant's application or user, or `null` where the tenant has only one. `null` and `""` are different. */
  readonly client: string | null;
}

const MAX_PART_LENGTH = 255;

/** Checks a scope that user code produced. Raises `oncekey_scope_invalid`, so that a missing tenant can never mean "everyone". */
export function checkScope(scope: unknown): Scope {
  const candidate = scope as Partial<Scope> | null | undefined;
  if (typeof candidate !== "object" || candidate === null) throw invalid("scope must be { tenant, client }");
  const { tenant, client } = candidate;
  if (typeof tenant !== "string" || tenant === "") throw invalid("scope.tenant must be a non-empty string");
  if (client !== null && typeof client !== "string") throw invalid("scope.client must be a string or null");
  for (const part of [tenant, client ?? ""]) {
    if (part.length > MAX_PART_LENGTH) throw invalid(`scope parts are limited to ${MAX_PART_LENGTH} characters`);
    if (!part.isWellFormed() || part.includes("\0")) throw invalid("scope parts must be well-formed text without NUL");
  }
  return { tenant, client };
}

function invalid(what: string): OncekeyError {
  return new OncekeyError(
    "oncekey_scope_invalid",
    `${what}. Nothing was run or stored. Return the authenticated tenant and client from the binding's scope function.`,
  );
}
