import { OncekeyError } from "../core/errors.ts";

/** Who works with the console, and what that person may do. */
export interface Operator {
  /** For the audit: 1 to 255 characters. */
  readonly name: string;
  /** The only tenant whose entries, messages and audit are shown and changed; `null`: all. */
  readonly tenant: string | null;
  /** Changes nothing. Default false. */
  readonly readOnly?: boolean;
  /** May look at keys and stored content, which is audited. Default: unless `readOnly`. */
  readonly mayReveal?: boolean;
}

/** An operator with every default filled in. */
export type Permitted = Required<Operator>;

/** What the whole console permits, whoever works with it. */
export interface ConsoleLimits {
  readonly readOnly: boolean;
  readonly reveal: boolean;
}

const LONGEST = 255;

/**
 * What the operator may do here. Raises `oncekey_config_invalid` where `authorize` gave something else than an operator: a
 * tenant that is missing must never mean all of them.
 */
export function permitted(given: unknown, limits: ConsoleLimits): Permitted {
  const { name, tenant, readOnly = false, mayReveal = !readOnly } = (given ?? {}) as Partial<Operator>;
  const isText = (value: unknown): value is string =>
    typeof value === "string" &&
    value !== "" &&
    value.length <= LONGEST &&
    value.isWellFormed() &&
    !value.includes("\0");
  if (
    !isText(name) ||
    !(tenant === null || isText(tenant)) ||
    typeof readOnly !== "boolean" ||
    typeof mayReveal !== "boolean"
  ) {
    throw new OncekeyError(
      "oncekey_config_invalid",
      "An operator of the console is { name, tenant, readOnly?, mayReveal? }: a name, and a tenant or null for all. Nothing was shown; correct what authorize or the list of users gives.",
    );
  }
  return {
    name,
    tenant,
    readOnly: readOnly || limits.readOnly,
    // A look is audited, so that a console which writes nothing cannot grant it.
    mayReveal: mayReveal && limits.reveal && !limits.readOnly,
  };
}
