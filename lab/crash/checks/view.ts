import type { EffectRow, Evidence } from "../evidence.ts";
import { type Exchange, identityOf } from "../history.ts";
import { isFinal, meaningOf } from "../meaning.ts";

/** Everything that is known of one identity. */
export interface Story {
  readonly identity: string;
  readonly what: EffectRow["what"];
  readonly exchanges: readonly Exchange[];
  readonly effects: readonly EffectRow[];
}

/** The stories of all identities that anybody has asked for, or that left an effect. */
export function storiesOf({ exchanges, effects }: Pick<Evidence, "exchanges" | "effects">): Story[] {
  const asked = grouped(exchanges, identityOf);
  const made = grouped(effects, identityOf);
  return [...new Set([...asked.keys(), ...made.keys()])].map((identity) => {
    const [mine, rows] = [asked.get(identity) ?? [], made.get(identity) ?? []];
    const what = mine[0]?.what ?? rows[0]?.what ?? "invoice";
    return { identity, what, exchanges: mine, effects: rows };
  });
}

/** Those of a list by what `nameOf` says of them, in their order. */
export function grouped<T>(all: readonly T[], nameOf: (one: T) => string): Map<string, T[]> {
  const groups = new Map<string, T[]>();
  for (const one of all) {
    const name = nameOf(one);
    const group = groups.get(name);
    if (group === undefined) groups.set(name, [one]);
    else group.push(one);
  }
  return groups;
}

/** Exchanges with the answers that end them: carried out, or refused by the business. */
export function endedBy(exchanges: readonly Exchange[], ...meanings: readonly string[]): Answered[] {
  return exchanges.filter((one): one is Answered => one.answer !== null && meanings.includes(meaningOf(one.answer)));
}

/** An exchange that was answered. */
export type Answered = Exchange & { readonly answer: NonNullable<Exchange["answer"]> };

/** All final answers, mismatches included. */
export function finals(exchanges: readonly Exchange[]): Answered[] {
  return exchanges.filter((one): one is Answered => one.answer !== null && isFinal(one.answer));
}

/** One exchange for each payload whose sender meant it and never learned the end: a `changed` one was sent to be refused. */
export function withoutEnd({ exchanges }: Story): Exchange[] {
  const ended = new Set(finals(exchanges).map(({ payload }) => payload));
  const open = exchanges.filter(({ payload, role }) => role !== "changed" && !ended.has(payload));
  return [...grouped(open, ({ payload }) => payload).values()].flatMap(([one]) => one ?? []);
}

/** The amount that a payload asks for, with its digits. */
export function amountIn(payload: string): string {
  return String((JSON.parse(payload) as { readonly amount_minor: number }).amount_minor);
}

/** Whether an effect is that of a payload. */
export function isEffectOf({ amount, chargeId }: EffectRow, payload: string): boolean {
  const asked = JSON.parse(payload) as { readonly charge_id?: string };
  return amountIn(payload) === amount && (asked.charge_id ?? null) === chargeId;
}

/** The body of an answer. */
export function bodyOf({ answer }: Answered): Record<string, unknown> {
  return JSON.parse(answer.body) as Record<string, unknown>;
}
