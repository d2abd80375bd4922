import { idBytes } from "../../../core/identity.ts";
import type { Intent, RecoverForm } from "../../../core/intent.ts";
import { instant, instantOrNull, number, text, textOrNull } from "../rows.ts";
import type { Ask } from "./reading.ts";

/** An outside call that an entry has sent or is about to send. */
export interface SentCall {
  readonly call: string;
  readonly generation: number;
  readonly state: Intent["state"];
  readonly form: RecoverForm | null;
  /** The key that it carries, or its two ends. */
  readonly derivedKey: string;
  readonly startedAt: Date;
  readonly settlesAt: Date | null;
}

/** The outside calls of an entry, oldest first; of their keys only the ends, or all of them. Raises as `ask` does. */
export async function sentCalls(ask: Ask, id: string, masked: boolean): Promise<readonly SentCall[]> {
  const rows = await ask("console_intents", [idBytes(id), masked]);
  return rows.map((row) => ({
    call: text(row, "call"),
    generation: number(row, "generation"),
    state: text(row, "state") as Intent["state"],
    form: textOrNull(row, "form") as RecoverForm | null,
    derivedKey: text(row, "derived_key"),
    startedAt: instant(row, "started_at"),
    settlesAt: instantOrNull(row, "settles_at"),
  }));
}
