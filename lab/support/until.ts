import { setTimeout as sleep } from "node:timers/promises";

/**
 * Waits until the condition gives something (not `false`, `null` or `undefined`), and gives that. Looks every `everyMs`;
 * raises after `limitMs`.
 */
export async function until<Value>(
  what: string,
  limitMs: number,
  condition: () => Value | Promise<Value>,
  everyMs = 50,
): Promise<Exclude<Value, false | null | undefined>> {
  const endAtMs = performance.now() + limitMs;
  for (;;) {
    const value = await condition();
    if (value !== false && value !== null && value !== undefined) {
      return value as Exclude<Value, false | null | undefined>;
    }
    if (performance.now() > endAtMs) throw new Error(`Not within ${limitMs} ms: ${what}.`);
    await sleep(everyMs);
  }
}
