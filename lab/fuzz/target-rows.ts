import { storedEntry, storedIntent, storedJournal } from "../../src/stores/postgres/rows.ts";
import { must, outcomeOf } from "./finding.ts";
import { bytesOfAll, type FuzzTarget, repeated, type Verdict } from "./target.ts";

const REFUSES = ["oncekey_store_broken"];
const ENTRY: Readonly<Record<string, unknown>> = {
  ...{
    id: "\\x01",
    tenant: "acme",
    client: null,
    operation: "pay",
    key: "k",
    run_kind: "transaction",
    operation_version: 1,
  },
  ...{
    fingerprint: "\\x02",
    wire_digest: null,
    fence: "\\x03",
    seed: "\\x04",
    input: "\\x05",
    context: null,
    correlation: null,
  },
  ...{
    state: "succeeded",
    attempt: 1,
    recovery_point: null,
    reason: null,
    outcome: "\\x06",
    body_pointer: null,
    status: 201,
  },
  ...{
    outcome_gone: false,
    created_at: "1790000000000",
    completed_at: 1790000000000.5,
    expires_at: null,
    age_ms: "12",
  },
  ...{ claimable_in_ms: -3, expired: false, tombstoned: false, sweep_in_ms: null, settles_in_ms: "9007199254740993" },
};
const INTENT: Readonly<Record<string, unknown>> = {
  ...{ kind: "intent", name: "charge", call: "charge", generation: 1, derived_key: "d", request_digest: "\\x07" },
  ...{ state: "open", form: null, age_ms: "1", settles_in_ms: null },
};
const RECORD: Readonly<Record<string, unknown>> = { kind: "phase", position: "0", name: "a", value: "\\x08" };
const ROWS = [ENTRY, INTENT, RECORD];

/** Rows as a driver gives them: JSON here, in which `\x…` is a bytea. */
export const rowsTarget: FuzzTarget = {
  name: "rows",
  about: "rows of entries, intents and records with any column of another type: typed values or a refusal",
  seeds: bytesOfAll(ROWS.map((row) => JSON.stringify(row))),
  words: [
    '"\\\\x00"',
    "null",
    "true",
    '""',
    '" "',
    '"1"',
    "1",
    "1e999",
    '"NaN"',
    "[]",
    "{}",
    '"state":',
    '"age_ms":',
    '"id":',
    ",",
  ],
  run: (input) => readAll(rowOf(input) ?? ENTRY),
  try: tryRow,
  properties: [],
  families: [repeated("a long column", '{"kind":"phase","name":"', "a", '"}')],
};

function rowOf(input: Uint8Array): Record<string, unknown> | null {
  try {
    const value: unknown = JSON.parse(Buffer.from(input).toString(), (_, one: unknown) =>
      typeof one === "string" && /^\\x[0-9a-f]*$/.test(one) ? Uint8Array.from(Buffer.from(one.slice(2), "hex")) : one,
    );
    return typeof value === "object" && value !== null && !Array.isArray(value) ? { ...value } : null;
  } catch {
    return null;
  }
}

const readAll = (row: Record<string, unknown>): unknown[] => [storedJournal([row]), storedEntry(row)];

function tryRow(input: Uint8Array): Verdict {
  const row = rowOf(input);
  if (row === null) return "refused";
  const outcomes = [
    outcomeOf(REFUSES, () => storedEntry(row)),
    outcomeOf(REFUSES, () => storedIntent(row)),
    outcomeOf(REFUSES, () => storedJournal([row])),
  ];
  for (const outcome of outcomes) if (outcome.kind === "value") mustBeTyped(outcome.value, row);
  return outcomes.some(({ kind }) => kind === "value") ? "accepted" : "refused";
}

/** No value may be of another type than its column had, and no number made of what is none. */
function mustBeTyped(value: unknown, row: Readonly<Record<string, unknown>>): void {
  if (typeof value === "number") must(isNumberIn(row, value), "a number that no column holds");
  else if (typeof value === "string") must(Object.values(row).includes(value), "a text that no column holds");
  else if (value instanceof Date) must(isNumberIn(row, value.getTime()), "an instant that no column holds");
  else if (typeof value === "object" && value !== null && !(value instanceof Uint8Array)) {
    for (const member of Object.values(value)) mustBeTyped(member, row);
  }
}

const NUMBER = /^-?(\d+(\.\d+)?|\.\d+)(e[-+]?\d+)?$/i;

function isNumberIn(row: Readonly<Record<string, unknown>>, value: number): boolean {
  return Object.values(row).some((one) => {
    if (typeof one === "number") return one === value || Math.trunc(one) === value;
    return typeof one === "string" && NUMBER.test(one) && (Number(one) === value || Math.trunc(Number(one)) === value);
  });
}
