import { readFileSync } from "node:fs";
import { join } from "node:path";
import { behave, list } from "./client.ts";
import type { Program } from "./crash-lab.ts";
import { eventually } from "./example.ts";

/** What the provider made for one amount. */
export interface ProviderEffects {
  readonly authorizations: number;
  readonly captures: number;
}

/** Asks the provider, once its look-ups hide nothing any more. */
export async function effectsAtProvider(psp: Program, amount: number): Promise<ProviderEffects> {
  await behave(psp.url, { find_lag_ms: 0 });
  const count = async (kind: string) =>
    (await list(`${psp.url}/${kind}`)).filter((one) => one.amount_minor === amount).length;
  return { authorizations: await count("authorizations"), captures: await count("captures") };
}

type LedgerLine = { readonly type: string; readonly pending?: string | { readonly id: string } };

/** Waits until everything that the provider accepted for later has landed or was dropped. */
export function everythingLanded(ledgerDir: string): Promise<void> {
  return eventually("accepted payments have landed", 30_000, () => {
    const waiting = new Set<string>();
    for (const line of readFileSync(join(ledgerDir, "ledger.jsonl"), "utf8").split("\n").slice(0, -1)) {
      const { pending } = JSON.parse(line) as LedgerLine;
      if (typeof pending === "string") waiting.delete(pending);
      else if (pending !== undefined) waiting.add(pending.id);
    }
    return waiting.size === 0;
  });
}
