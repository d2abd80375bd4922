import type { EffectRow, Evidence, Payment } from "../evidence.ts";
import type { Invariant } from "./invariant.ts";
import { type Answered, amountIn, bodyOf, endedBy, grouped, isEffectOf, type Story, storiesOf } from "./view.ts";

/** What was done: once, as it was answered, and by nobody who was told that it was not. */
export function checkEffects(evidence: Evidence): Invariant[] {
  const stories = storiesOf(evidence);
  const ofKind = (what: Story["what"]) => stories.filter((story) => story.what === what && story.effects.length > 0);
  return [
    ...(["invoice", "charge", "refund"] as const).map((what) => ({
      name: `at most one ${what} for each tenant, client and key`,
      looked: ofKind(what).length,
      wrong: ofKind(what)
        .filter(({ effects }) => effects.length > 1)
        .map(brief),
    })),
    ...checkProvider(evidence),
    answeredEffects(evidence, stories),
    refusedEffects(stories),
    payloadsThatRan(stories),
    strangersPayloads(evidence, stories),
  ];
}

const brief = ({ identity, effects }: Story) => ({
  identity,
  effects: effects.map(({ id, amount }) => ({ id, amount })),
});

/** Every charge has an amount of its own, so the provider's payments tell whose they are, whatever key they came under. */
function checkProvider({ payments, effects }: Evidence): Invariant[] {
  const charges = effects.filter(({ what }) => what === "charge");
  const amounts = new Set(charges.map(({ amount }) => amount));
  const settled = charges.filter(({ status }) => status !== "pending");
  const perAmount = (kind: Payment["kind"]) =>
    grouped(
      payments.filter((one) => one.kind === kind),
      ({ amount }) => amount,
    );
  return [
    ...(["authorizations", "captures"] as const).map((kind) => {
      const groups = perAmount(kind);
      const wrong = [...groups].filter(([, made]) => made.length > 1).map(([amount, made]) => ({ amount, made }));
      return { name: `at most one of the provider's ${kind} for each charge`, looked: groups.size, wrong };
    }),
    {
      name: "every payment at the provider belongs to a charge that was committed",
      looked: payments.length,
      wrong: payments.filter(({ amount }) => !amounts.has(amount)),
    },
    {
      name: "every settled charge names the provider's own payments",
      looked: settled.length,
      wrong: settled.filter((charge) => !isPaid(charge, payments)),
    },
    {
      name: "no charge stays between its phases",
      looked: charges.length,
      wrong: charges.filter(({ status }) => status === "pending"),
    },
  ];
}

function isPaid({ status, amount, authorization, capture }: EffectRow, payments: readonly Payment[]): boolean {
  const authorized = payments.find(({ kind, id }) => kind === "authorizations" && id === authorization);
  if (authorized?.amount !== amount) return false;
  if (status === "declined") return authorized.status === "declined" && capture === null;
  const captured = payments.find(({ kind, id }) => kind === "captures" && id === capture);
  return captured?.amount === amount && captured.authorization === authorization;
}

function answeredEffects({ effects }: Evidence, stories: readonly Story[]): Invariant {
  const byId = new Map(effects.map((effect) => [effect.id, effect]));
  const done = stories.flatMap(({ exchanges }) => endedBy(exchanges, "done"));
  const isThere = (one: Answered) => {
    const body = bodyOf(one);
    const effect = byId.get(String(body.id));
    return effect !== undefined && isOwn(effect, one) && sameStatus(effect, body);
  };
  const wrong = done.filter((one) => !isThere(one)).map(({ key, answer }) => ({ key, body: answer.body }));
  return { name: "every answered success has its effect, with the same id", looked: done.length, wrong };
}

function isOwn(effect: EffectRow, { tenant, client, key, payload }: Answered): boolean {
  const sameKey = effect.tenant === tenant && effect.client === client && effect.key === key;
  return sameKey && isEffectOf(effect, payload);
}

function sameStatus(effect: EffectRow, { status, psp_authorization, psp_capture }: Record<string, unknown>): boolean {
  const paid = effect.authorization === (psp_authorization ?? null) && effect.capture === (psp_capture ?? null);
  return status === effect.status && paid;
}

/** A declined charge stays on the books; every other refusal has left nothing. */
function refusedEffects(stories: readonly Story[]): Invariant {
  const refused = stories.filter(({ exchanges }) => endedBy(exchanges, "refused").length > 0);
  const wrong = refused.filter(({ what, effects }) => {
    return what === "charge" ? effects.some(({ status }) => status !== "declined") : effects.length > 0;
  });
  return { name: "nothing that was refused has been done", looked: refused.length, wrong: wrong.map(brief) };
}

/** Whichever payload came first: one of a key's payloads is behind all that it made and all that it answered. */
function payloadsThatRan(stories: readonly Story[]): Invariant {
  const contested = stories.filter(({ exchanges }) => new Set(exchanges.map(({ payload }) => payload)).size > 1);
  const wrong = contested.filter(({ exchanges, effects }) => {
    const ran = new Set(endedBy(exchanges, "done", "refused").map(({ payload }) => payload));
    const payloads = new Set(exchanges.map(({ payload }) => payload));
    for (const payload of payloads) if (effects.some((one) => isEffectOf(one, payload))) ran.add(payload);
    return ran.size > 1;
  });
  return {
    name: "of the payloads that came under one key, one ran at most",
    looked: contested.length,
    wrong: wrong.map(brief),
  };
}

/** A payload that was refused as another one's, or sent when the key was certainly taken, is in no row and no payment. */
function strangersPayloads({ payments }: Evidence, stories: readonly Story[]): Invariant {
  const paid = new Set(payments.map(({ amount }) => amount));
  const strangers = stories.flatMap(({ exchanges, effects }) => {
    const owner = endedBy(exchanges, "done", "refused")[0]?.payload;
    const others = new Set(exchanges.map(({ payload }) => payload).filter((payload) => payload !== owner));
    return owner === undefined ? [] : [...others].map((payload) => ({ payload, effects }));
  });
  const ran = strangers.filter(({ payload, effects }) => {
    return effects.some((one) => isEffectOf(one, payload)) || paid.has(amountIn(payload));
  });
  return { name: "a payload that did not own its key never ran", looked: strangers.length, wrong: ran };
}
