import type { ClaimedMessage } from "../core/outbox.ts";
import { traceOf } from "../engine/observed-run.ts";
import type { Desk, Settled } from "./deliver.ts";

/** Tells observers what became of one delivery of a message. One that was lost is told by the relay that has it now. */
export function tellSettled({ emit, clock }: Desk, message: ClaimedMessage, as: Settled, startedAtMs: number): void {
  if (emit === null || as === "lost") return;
  const { id, tenant, topic, correlation, attempt } = message;
  const durationMs = clock.monotonicMs() - startedAtMs;
  emit({ kind: `message_${as}`, tenant, topic, messageId: id, trace: traceOf(correlation), attempt, durationMs });
}
