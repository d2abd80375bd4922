/** A label of a metric. Each takes few values: none is a key, a path, or anything else that a client may choose. */
export type Label =
  | "operation"
  | "result"
  | "status"
  | "by"
  | "state"
  | "reason"
  | "found"
  | "as"
  | "event"
  | "code"
  | "what"
  | "topic"
  | "source"
  | "why"
  | "tenant";

/** One metric, named for OpenTelemetry; {@link prometheusName} gives the other spelling. */
export interface Instrument {
  readonly kind: "counter" | "histogram" | "gauge";
  /** `s`: seconds; `1`: a count. */
  readonly unit: "s" | "1";
  readonly help: string;
  readonly labels: readonly Label[];
}

const counter = (help: string, ...labels: Label[]): Instrument => ({ kind: "counter", unit: "1", help, labels });
const seconds = (help: string, ...labels: Label[]): Instrument => ({ kind: "histogram", unit: "s", help, labels });

/** Every metric: one row each. */
export const INSTRUMENTS = {
  "oncekey.requests": counter("Requests that were answered, by what became of them.", "operation", "result", "status"),
  "oncekey.request.duration": seconds("Time from the engine's door to the answer.", "operation", "result"),
  "oncekey.wait.duration": seconds("Time that duplicates waited for a running request.", "operation"),
  "oncekey.claims": counter("New keys that were claimed.", "operation"),
  "oncekey.resumes": counter("Entries that were taken over from an owner that left.", "operation", "by"),
  "oncekey.completions": counter("Outcomes that were stored by the run that made them.", "operation", "by", "state"),
  "oncekey.lease_losses": counter("Runs that lost their lease or their time.", "operation", "by"),
  "oncekey.needs_recovery": counter("Entries marked because nobody knows what happened.", "operation", "reason"),
  "oncekey.reconciliations": counter("Times that reconcile was asked, by what it found.", "operation", "found"),
  "oncekey.sweeps": counter("Entries that a sweeper took up, by what came of them.", "operation", "as"),
  "oncekey.refusals": counter("Requests refused before they ran, by code.", "operation", "code"),
  "oncekey.phase.duration": seconds("Time of committed phases.", "operation"),
  "oncekey.calls": counter("Outside calls: started, repeated, answered, failed, found.", "operation", "event"),
  "oncekey.call.duration": seconds("Time of outside calls and of look-ups that found one.", "operation", "event"),
  "oncekey.purged": counter("Rows and bodies deleted because they are kept no longer.", "what"),
  "oncekey.purge.last_timestamp": {
    kind: "gauge",
    unit: "s",
    help: "When this process last looked for what to delete, in seconds since 1970.",
    labels: ["what"],
  },
  "oncekey.messages": counter("Outbox messages: sent, delivered, postponed, dead.", "topic", "event"),
  "oncekey.message.delivery.duration": seconds("Time of one delivery of a message.", "topic", "event"),
  "oncekey.deliveries": counter("Deliveries that arrived, by what became of them.", "source", "result"),
  "oncekey.delivery.duration": seconds("Time that taking a delivery in took.", "source", "result"),
  "oncekey.webhook.refusals": counter("Webhooks refused before they were taken in.", "source", "why"),
} as const satisfies Readonly<Record<`oncekey.${string}`, Instrument>>;

/** The name of a metric. */
export type InstrumentName = keyof typeof INSTRUMENTS;

/** The metrics with their rows, `tenant` added where that is wanted and the event tells it. */
export function instruments(withTenant: boolean): readonly (readonly [InstrumentName, Instrument])[] {
  return (Object.entries(INSTRUMENTS) as [InstrumentName, Instrument][]).map(([name, row]) => {
    const hasTenant = withTenant && row.labels[0] !== "what";
    return [name, hasTenant ? { ...row, labels: [...row.labels, "tenant"] } : row];
  });
}

/** Upper bounds of the histograms' buckets, in seconds. */
export const BUCKETS_S: readonly number[] = [
  0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60,
];

/** A metric's name as Prometheus spells it, as OpenTelemetry's own exporter would. */
export function prometheusName(name: string, { kind, unit }: Instrument): string {
  const base = name.replaceAll(".", "_");
  const measured = unit === "s" ? `${base}_seconds` : base;
  return kind === "counter" ? `${measured}_total` : measured;
}
