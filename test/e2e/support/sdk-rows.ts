import { appendFileSync, existsSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";

// The rows of the table of docs/dialects.md. Free of the test runner: the script that makes the table reads it too.

/** The cases, by the words that the table in docs/dialects.md has for them. */
const CASES = {
  first: "first call",
  cut_before: "connection cut before the work",
  cut_after: "connection cut after the work",
  same_key: "same key twice by the caller",
  other_content: "same key, other content",
  duplicate: "duplicate while the first runs",
  store_down: "store down",
} as const;

/** One row of the table: what a case of an SDK came to. */
export interface SdkRow {
  /** The package's name, and the version that is installed. */
  readonly sdk: string;
  readonly version: string;
  readonly profile: string;
  readonly case: keyof typeof CASES;
  /** A variant of the case, in a few words: "at another endpoint", "own retry". */
  readonly variant?: string;
  /** HTTP requests that left the SDK. */
  readonly attempts: number;
  /** How often the operation was carried out, in the database and at the provider. */
  readonly executions: number;
  /** What the caller holds: the class of the result or of the error, with what tells it apart. */
  readonly result: string;
}

/** The head of the table. */
export const ROWS_HEAD = [
  "| SDK | profile | case | requests | executions | the caller gets |",
  "| --- | --- | --- | --- | --- | --- |",
].join("\n");

/** A row as a line of the table. */
export function rowLine({ sdk, version, profile, case: name, variant, attempts, executions, result }: SdkRow): string {
  const what = variant === undefined ? CASES[name] : `${CASES[name]}, ${variant}`;
  return `| ${sdk} ${version} | \`${profile}\` | ${what} | ${attempts} | ${executions} | ${result.replaceAll("|", "\\|")} |`;
}

const CHECKOUT = resolve(import.meta.dirname, "..", "..", "..");
const PAGE = join(CHECKOUT, "docs", "dialects.md");

/** What a run fills in of its rows. */
export type RowOfRun = Omit<SdkRow, "sdk" | "version" | "profile">;

/** Whose rows they are. `vendor-sdks`: the SDK is of the project in test/peers that installs them apart. */
export interface RowsOwner {
  readonly sdk: string;
  readonly profile: string;
  readonly project?: "vendor-sdks";
}

/**
 * Takes the rows of an SDK down. With ONCEKEY_SDK_ROWS they go to that file, one JSON object a line, from which the page is
 * made; without, the page must have them: a row that a run does not confirm is no longer true. Raises where it has not.
 */
export function rowsOf({ sdk, profile, project }: RowsOwner): (row: RowOfRun) => void {
  const home = project === undefined ? CHECKOUT : join(CHECKOUT, "test", "peers", project);
  const { version } = JSON.parse(readFileSync(join(home, "node_modules", sdk, "package.json"), "utf8"));
  return (row) => recordRow({ sdk, version, profile, ...row });
}

function recordRow(row: SdkRow): void {
  const file = process.env.ONCEKEY_SDK_ROWS;
  if (file !== undefined && file !== "") {
    appendFileSync(resolve(CHECKOUT, file), `${JSON.stringify(row)}\n`);
    return;
  }
  const page = existsSync(PAGE) ? readFileSync(PAGE, "utf8") : "";
  if (page.split("\n").includes(rowLine(row))) return;
  throw new Error(`docs/dialects.md lacks this row of the run; make its table anew:\n${rowLine(row)}`);
}
