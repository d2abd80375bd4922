import { setTimeout as sleep } from "node:timers/promises";
import type { Behaviour } from "../psp/behaviour.ts";
import type { ApiProcess } from "./api-process.ts";
import type { Storm } from "./storm.ts";

/** What is done to the payments while they run. */
export interface Chaos {
  /** How often the API was killed so far. */
  kills(): number;
  /** Rejects where the chaos itself fails. Never resolves. */
  readonly broken: Promise<never>;
  /** Ends the misbehaviour; resolves when the provider behaves again. */
  stop(): Promise<void>;
}

/** The provider's moods, in turn. It always dedupes: that is the promise the example's charges rely on. */
const MOODS: readonly Partial<Behaviour>[] = [
  { latency_ms: 20 },
  { drop_next: 6 },
  { land_after_ms: 300 },
  { land_after_ms: 0, latency_ms: 60 },
  { fail_next: 4 },
];
const MOOD_LASTS_MS = 300;
/** The provider recovers before the last payments: "the next n calls" would all be calls of the same few. */
const MOODS_END_AT = 0.85;

/** Lets the provider misbehave and kills the API each time another share of the payments has been answered. */
export function startChaos(api: ApiProcess, storm: Storm, killAt: readonly number[]): Chaos {
  const stopping = new AbortController();
  let kills = 0;
  const moods = (async () => {
    for (
      let turn = 0;
      !stopping.signal.aborted && storm.counts.answered < MOODS_END_AT * storm.payments.length;
      turn++
    ) {
      await behave(api.urls.psp, MOODS[turn % MOODS.length] ?? {});
      await sleep(MOOD_LASTS_MS);
    }
    await behave(api.urls.psp, { latency_ms: 0, land_after_ms: 0, drop_next: 0, fail_next: 0 });
  })();
  const deaths = (async () => {
    for (const share of killAt) {
      while (storm.counts.answered < share * storm.payments.length && !stopping.signal.aborted) await sleep(10);
      if (stopping.signal.aborted) return;
      await api.kill();
      kills++;
      await api.start();
    }
  })();
  const broken = new Promise<never>((_resolve, reject) => {
    for (const part of [moods, deaths]) part.catch(reject);
  });
  broken.catch(() => undefined);
  return {
    broken,
    kills: () => kills,
    async stop() {
      stopping.abort();
      await Promise.all([moods, deaths]);
    },
  };
}

async function behave(psp: string, change: Partial<Behaviour>): Promise<void> {
  const response = await fetch(`${psp}/behaviour`, { method: "POST", body: JSON.stringify(change) });
  if (!response.ok) throw new Error(`The provider refused a change of behaviour: ${response.status}.`);
}
