/**
 * How long an answer asks to be left alone, in milliseconds; `undefined`: it does not say. `Retry-After` as seconds or as
 * a date (RFC 9110, 10.2.3), which is compared with the answer's own `Date`: the two clocks need not agree. The relay
 * bounds it.
 */
export function afterMsOf(headers: Pick<Headers, "get">): number | undefined {
  const given = headers.get("retry-after")?.trim();
  if (given === undefined || given === "") return undefined;
  if (/^\d{1,9}$/.test(given)) return Number(given) * 1_000;
  const untilMs = Date.parse(given);
  if (Number.isNaN(untilMs)) return undefined;
  const saidAtMs = Date.parse(headers.get("date") ?? "");
  return Math.max(0, untilMs - (Number.isNaN(saidAtMs) ? Date.now() : saidAtMs));
}
