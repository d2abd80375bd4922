import { sqlStateOf } from "../failure.ts";
import { type Check, type Finding, NotLooked, type Seen, type Severity, type View } from "./check.ts";
import { checks } from "./checks.ts";
import { isStatementMode, poolerCheck, statementMode } from "./pooler.ts";
import { newestMigration } from "./schema.ts";

/** What one check said. */
export interface Checked {
  readonly name: string;
  /** The worst of its findings; `skipped` where it could not look. */
  readonly result: Severity | "skipped";
  /** What it saw, or why it could not look. One line. */
  readonly seen: string;
  readonly findings: readonly Finding[];
}

/** Runs every check in turn, and tells which. Raises the database client's own error where the database cannot be reached. */
export async function examine(view: View, tell: (what: string) => void = () => {}): Promise<Checked[]> {
  const migration = await newestOr(view);
  if (migration === "refused") return checks.map(throughStatementMode);
  const results: Checked[] = [];
  for (const check of checks) {
    tell(`check ${results.length + 1} of ${checks.length}, ${check.name}`);
    const isBlind = check.needs === "tables" && migration === null;
    results.push(isBlind ? skipped(check, "there are no tables that this role sees") : await checked(check, view));
  }
  return results;
}

async function newestOr(view: View): Promise<number | null | "refused"> {
  try {
    return await newestMigration(view);
  } catch (error) {
    if (isStatementMode(error)) return "refused";
    // The schema's own check says it in full.
    if (reasonToSkip(error) !== null) return null;
    throw error;
  }
}

function throughStatementMode(check: Check): Checked {
  if (check !== poolerCheck) return skipped(check, "the pooler refuses transactions");
  return result(check, { seen: "there is one, in statement mode", findings: [statementMode] });
}

async function checked(check: Check, view: View): Promise<Checked> {
  try {
    return result(check, await check.look(view));
  } catch (error) {
    const why = reasonToSkip(error);
    if (why === null) throw error;
    return skipped(check, why);
  }
}

const ORDER: readonly Severity[] = ["ok", "note", "warning", "error"];

/** The worst of these. */
export function worstOf(severities: readonly Severity[]): Severity {
  return ORDER[Math.max(0, ...severities.map((severity) => ORDER.indexOf(severity)))] ?? "ok";
}

function result({ name }: Check, { seen, findings }: Seen): Checked {
  return { name, result: worstOf(findings.map(({ severity }) => severity)), seen, findings };
}

function skipped({ name }: Check, why: string): Checked {
  return { name, result: "skipped", seen: why, findings: [] };
}

/** By SQLSTATE: what keeps one check from looking and says nothing about the others. */
const REASONS: readonly (readonly [RegExp, string])[] = [
  [/^42501$/, "this database role may not read what it looks at; connect as the owner of the schema"],
  [/^(?:42P01|42703|3F000)$/, "this schema does not have what it looks at; migrate it first"],
  [
    /^(?:57014|55P03)$/,
    "it took longer than its time limit of 5 s, or waited for a lock; try when there is less to do",
  ],
];

function reasonToSkip(error: unknown): string | null {
  if (error instanceof NotLooked) return error.message;
  const state = sqlStateOf(error) ?? "";
  return REASONS.find(([pattern]) => pattern.test(state))?.[1] ?? null;
}
