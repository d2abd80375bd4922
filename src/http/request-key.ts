import { OncekeyError } from "../core/errors.ts";
import { type ParsedKey, parseKey } from "../core/key.ts";
import type { BindingOptions } from "./binding.ts";
import type { Exchange } from "./exchange.ts";
import type { KeyPlace, KeyRule } from "./profile.ts";
import type { KeyedRequest } from "./profile-request.ts";

/** What the key of a request must be. */
export interface KeyDemand {
  readonly rule: KeyRule;
  /** In characters. */
  readonly maxLength: number;
  readonly required: boolean;
}

/** The dialect's rule with what a binding changes of it. */
export function boundKeyRule(
  rule: KeyRule,
  { keyName, requireKey = rule.required }: Pick<BindingOptions<never>, "keyName" | "requireKey">,
): KeyRule {
  // Whoever demands a key of a route wants it read there, whatever the dialect does elsewhere.
  const demanding = requireKey && !rule.required ? { ...rule, ignoredOn: [] } : rule;
  if (keyName === undefined) return { ...demanding, required: requireKey };
  const place: KeyPlace =
    rule.place.in === "header" ? { in: "header", name: keyName.toLowerCase() } : { in: "member", names: [keyName] };
  return { ...demanding, place, required: requireKey };
}

/** Whether the key can be read before the body, which is the order of the checks where it can. */
export function isInHead({ place }: KeyRule): boolean {
  return place.in === "header";
}

/**
 * The key that a request's head carries; `null` where it may be absent and is. Raises `idempotency_key_missing` and
 * `idempotency_key_invalid`.
 */
export function headKey(demand: KeyDemand, exchange: Pick<Exchange, "headerLines">): string | null {
  const { place } = demand.rule;
  if (place.in !== "header") return null;
  const parsed = parseKey(exchange.headerLines(place.name), { maxLength: demand.maxLength });
  return demanded(demand, parsed, `the header ${place.name}`);
}

/** The key that a request's body or query carries: in one place only. Raises as {@link headKey}. */
export function memberKey(demand: KeyDemand, request: Pick<KeyedRequest, "everyMember">): string | null {
  const { place } = demand.rule;
  if (place.in !== "member") return null;
  const values = place.names.flatMap((name) => request.everyMember(name));
  return demanded(demand, parsedMember(values, demand.maxLength), `the member ${place.names.join(" or ")}`);
}

// What travels as a value of JSON or a form has no syntax of its own: quotes and commas are characters of the key.
function parsedMember([value, ...others]: readonly unknown[], maxLength: number): ParsedKey {
  if (value === undefined) return { kind: "missing" };
  const why = others.length > 0 ? "it was sent more than once" : memberFault(value, maxLength);
  return why === null ? { kind: "key", key: value as string } : { kind: "invalid", why };
}

function memberFault(value: unknown, maxLength: number): string | null {
  if (typeof value !== "string") return "it is no text, or was sent more than once";
  if (value.trim() === "") return "it is empty";
  if (!/^[\x20-\x7e]+$/.test(value)) return "it holds a control character or a character outside ASCII";
  return value.length > maxLength ? `it is longer than ${maxLength} characters` : null;
}

function demanded({ rule, required }: KeyDemand, parsed: ParsedKey, where: string): string | null {
  if (parsed.kind === "missing" && !required) return null;
  if (parsed.kind === "missing") {
    throw new OncekeyError(
      "idempotency_key_missing",
      `This request needs ${where}. Nothing was run or stored. Make a new random key, keep it, and send it with every attempt.`,
    );
  }
  if (parsed.kind === "invalid") throw malformed(where, parsed.why);
  const { syntax, spelling = (key) => key } = rule;
  if (syntax !== undefined && !syntax.pattern.test(parsed.key)) throw malformed(where, `it must be ${syntax.says}`);
  return spelling(parsed.key);
}

function malformed(where: string, why: string): OncekeyError {
  return new OncekeyError(
    "idempotency_key_invalid",
    `The key in ${where} is malformed: ${why}. Nothing was run or stored. Send one key of printable ASCII.`,
  );
}
