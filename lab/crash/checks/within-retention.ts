import type { Evidence } from "../evidence.ts";
import { identityOf } from "../history.ts";
import { amountIn } from "./view.ts";

/**
 * The evidence without the keys that came back once the retention of their outcome was over. Such a request is a new one,
 * and "once" is promised within the retention only. That it was over is what the database has noted, by its own clock: on a
 * slow machine a request may be under way for longer than the campaign's short retention, and nothing is wrong with that.
 */
export function withinRetention(evidence: Evidence): Evidence {
  const late = new Set(evidence.late.map(identityOf));
  if (late.size === 0) return evidence;
  const isWithin = (one: Parameters<typeof identityOf>[0]) => !late.has(identityOf(one));
  const exchanges = evidence.exchanges.filter(isWithin);
  const gone = {
    amounts: new Set(evidence.exchanges.filter((one) => !isWithin(one)).map(({ payload }) => amountIn(payload))),
    ids: new Set(evidence.effects.filter((one) => !isWithin(one)).map(({ id }) => id)),
  };
  return {
    ...evidence,
    exchanges,
    verdicts: evidence.verdicts.filter(isWithin),
    effects: evidence.effects.filter(isWithin),
    payments: evidence.payments.filter(({ amount }) => !gone.amounts.has(amount)),
    deliveries: evidence.deliveries.filter(({ about }) => !gone.ids.has(about)),
  };
}
