import type { OncekeyEvent, RunEnd, RunEvent } from "../engine/event.ts";
import type { InstrumentName, Label } from "./instruments.ts";

/** One number for one metric. */
export interface Measurement {
  readonly name: InstrumentName;
  /** Seconds for durations and instants. */
  readonly value: number;
  readonly labels: { readonly [L in Label]?: string };
}

/** What an event counts as. `nowMs`: the local clock, for the one metric that is an instant. */
export function measurementsOf(event: OncekeyEvent, nowMs: number, withTenant: boolean): readonly Measurement[] {
  const measured = plainMeasurements(event, nowMs);
  if (!withTenant || !("tenant" in event) || event.tenant === null) return measured;
  const { tenant } = event;
  return measured.map(({ labels, ...rest }) => ({ ...rest, labels: { ...labels, tenant } }));
}

function plainMeasurements(event: OncekeyEvent, nowMs: number): readonly Measurement[] {
  switch (event.kind) {
    case "purged": {
      const labels = { what: event.what };
      return [
        { name: "oncekey.purged", value: event.count, labels },
        { name: "oncekey.purge.last_timestamp", value: nowMs / 1_000, labels },
      ];
    }
    case "message_sent":
      return [one("oncekey.messages", { topic: event.topic, event: "sent" })];
    case "message_delivered":
    case "message_postponed":
    case "message_dead": {
      const labels = { topic: event.topic, event: event.kind.replace("message_", "") };
      return timed("oncekey.messages", "oncekey.message.delivery.duration", labels, event);
    }
    case "webhook_refused":
      return [one("oncekey.webhook.refusals", { source: event.source, why: event.why })];
    case "delivery_done":
    case "delivery_duplicate":
    case "delivery_rejected":
    case "delivery_out_of_order":
    case "delivery_unknown_producer":
    case "delivery_fenced":
    case "delivery_unsettled":
    case "delivery_threw": {
      const labels = { source: event.source, result: event.kind.replace("delivery_", "") };
      return timed("oncekey.deliveries", "oncekey.delivery.duration", labels, event);
    }
    default:
      return runMeasurements(event);
  }
}

function runMeasurements(event: RunEvent): readonly Measurement[] {
  const { operation, by } = event;
  switch (event.kind) {
    case "began":
      return [];
    case "claimed":
      return [one("oncekey.claims", { operation })];
    case "resumed":
      return [one("oncekey.resumes", { operation, by })];
    case "waited":
      return [{ name: "oncekey.wait.duration", value: event.durationMs / 1_000, labels: { operation } }];
    case "phase_committed":
      return [{ name: "oncekey.phase.duration", value: event.durationMs / 1_000, labels: { operation } }];
    case "call_started":
    case "call_repeated":
      return [one("oncekey.calls", { operation, event: event.kind.replace("call_", "") })];
    case "call_answered":
    case "call_failed":
    case "call_found": {
      const labels = { operation, event: event.kind.replace("call_", "") };
      return timed("oncekey.calls", "oncekey.call.duration", labels, event);
    }
    case "needs_recovery":
      return [{ name: "oncekey.needs_recovery", value: event.count, labels: { operation, reason: event.reason } }];
    case "reconciled":
      return [one("oncekey.reconciliations", { operation, found: event.found })];
    case "swept":
      return [one("oncekey.sweeps", { operation, as: event.as })];
    case "completed_late":
      return [one("oncekey.completions", { operation, by: "late_answer", state: stateOf(event.status) })];
    default:
      return endMeasurements(event, event.operation, event.by);
  }
}

function endMeasurements(end: RunEnd, operation: string, by: string): readonly Measurement[] {
  const measured: Measurement[] = [];
  if (end.kind === "completed") measured.push(one("oncekey.completions", { operation, by, state: end.state }));
  if (end.kind === "lease_lost") measured.push(one("oncekey.lease_losses", { operation, by }));
  if (end.kind === "refused") measured.push(one("oncekey.refusals", { operation, code: end.code }));
  // A sweeper's end is no request's; its entries are counted when it is done with them.
  if (by !== "request") return measured;
  const status = "status" in end ? String(end.status) : "";
  measured.push(one("oncekey.requests", { operation, result: end.kind, status }));
  const labels = { operation, result: end.kind };
  measured.push({ name: "oncekey.request.duration", value: end.durationMs / 1_000, labels });
  return measured;
}

function stateOf(status: number): string {
  return status >= 400 ? "failed" : "succeeded";
}

function one(name: InstrumentName, labels: Measurement["labels"]): Measurement {
  return { name, value: 1, labels };
}

function timed(
  count: InstrumentName,
  duration: InstrumentName,
  labels: Measurement["labels"],
  { durationMs }: { readonly durationMs: number },
): readonly Measurement[] {
  return [one(count, labels), { name: duration, value: durationMs / 1_000, labels }];
}
