import pg from "pg";
import type { ApiProcess } from "./api-process.ts";
import type { Storm } from "./storm.ts";

/** One line of the final table; `wanted` makes it an invariant. */
export interface ReportLine {
  readonly name: string;
  readonly value: number | string;
  readonly wanted?: number;
}

interface ChargeRow {
  readonly idempotency_key: string;
  readonly psp_authorization: string | null;
  readonly psp_capture: string | null;
}

interface PspObject {
  readonly id: string;
  readonly authorization?: string;
}

/** Counts what really happened: in the database, at the provider, and in everything that was printed. */
export async function makeReport(api: ApiProcess, storm: Storm, token: string): Promise<ReportLine[]> {
  const { payments, counts } = storm;
  const { charges, entries } = await readDatabase(api.urls.database);
  const unfinished = entries.filter(({ state }) => state !== "succeeded");
  for (const { state, attempt, recovery_point, reason, due_in_s } of unfinished) {
    const where = `${state} after ${recovery_point ?? "its claim"}, attempt ${attempt}, due in ${due_in_s ?? "?"} s`;
    counts.surprises.push(`an entry is ${where}: ${reason ?? "no reason given"}`);
  }
  const authorizations = await readPsp(`${api.urls.psp}/authorizations`);
  const captures = await readPsp(`${api.urls.psp}/captures`);
  const chargesOf = (key: string) => charges.filter((charge) => charge.idempotency_key === key);
  const perPayment = (count: (charge: ChargeRow) => number) =>
    payments.filter(({ key }) => chargesOf(key).reduce((sum, charge) => sum + count(charge), 0) === 1).length;
  const secrets = [token, ...payments.map(({ key }) => key)];
  const all = payments.length;
  return [
    { name: "payments", value: all },
    { name: "requests sent", value: counts.requests },
    { name: "  connections broken", value: counts.broken },
    { name: "  told to come back", value: counts.comeBacks },
    { name: "executions", value: charges.length, wanted: all },
    { name: "replays", value: counts.replays },
    { name: "  waits (sent while it ran)", value: counts.waits },
    { name: "mismatches refused", value: counts.mismatches, wanted: changedPayments(storm) },
    { name: "resumes", value: entries.reduce((sum, { attempt }) => sum + attempt - 1, 0) },
    { name: "still unfinished", value: unfinished.length, wanted: 0 },
    { name: "payments with one charge", value: perPayment(() => 1), wanted: all },
    {
      name: "payments with one answer",
      value: payments.filter(({ answers }) => answers.size === 1).length,
      wanted: all,
    },
    {
      name: "payments with one authorization",
      value: perPayment((charge) => authorizations.filter(({ id }) => id === charge.psp_authorization).length),
      wanted: all,
    },
    {
      name: "payments with one capture",
      value: perPayment((charge) => captures.filter((one) => one.authorization === charge.psp_authorization).length),
      wanted: all,
    },
    { name: "PSP authorizations", value: authorizations.length, wanted: all },
    { name: "PSP captures", value: captures.length, wanted: all },
    { name: "surprising answers", value: counts.surprises.length, wanted: 0 },
    {
      name: "keys and tokens in the output",
      value: secrets.filter((one) => api.output().includes(one)).length,
      wanted: 0,
    },
  ];
}

const CHANGED_EVERY = 10;

/** How many payments were also sent with a changed payload. */
function changedPayments({ payments }: Storm): number {
  return Math.ceil(payments.length / CHANGED_EVERY);
}

/** True where every invariant holds. */
export function holds(lines: readonly ReportLine[]): boolean {
  return lines.every(({ value, wanted }) => wanted === undefined || value === wanted);
}

/** The table as text. */
export function formatReport(lines: readonly ReportLine[]): string {
  const width = Math.max(...lines.map(({ name }) => name.length));
  const verdict = ({ value, wanted }: ReportLine) => {
    if (wanted === undefined) return "";
    return value === wanted ? "  ok" : `  WRONG, must be ${wanted}`;
  };
  return lines
    .map((line) => `  ${line.name.padEnd(width)}  ${String(line.value).padStart(7)}${verdict(line)}`)
    .join("\n");
}

interface EntryRow {
  readonly state: string;
  readonly attempt: number;
  readonly recovery_point: string | null;
  readonly reason: string | null;
  /** Seconds until it may be taken up again; `null` where nothing is to be waited for. */
  readonly due_in_s: number | null;
}

async function readDatabase(url: string) {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    const charges = await client.query<ChargeRow>(
      "select idempotency_key, psp_authorization, psp_capture from charges where status = 'succeeded'",
    );
    const entries = await client.query<EntryRow>(
      `select state, attempt, recovery_point, reason, ceil(extract(epoch from not_before - now()))::int as due_in_s
       from oncekey.entry`,
    );
    return { charges: charges.rows, entries: entries.rows };
  } finally {
    await client.end();
  }
}

async function readPsp(url: string): Promise<PspObject[]> {
  const response = await fetch(url);
  return ((await response.json()) as { data: PspObject[] }).data;
}
