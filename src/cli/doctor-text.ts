import type { Checked } from "./doctor/examine.ts";
import { alarming, aligned, counted } from "./layout.ts";

/** The report for people: one line a check, and below what was found, why it matters and what to do. */
export function doctorText(results: readonly Checked[]): string {
  const rows = results.map(({ name, result, seen }) => [name, `${result.padEnd(7)}  ${seen}`] as const);
  const findings = results.flatMap(({ name, findings: found }) =>
    found.map(({ severity, what, why, fix }) => {
      const head = `${severity}, ${name}`;
      return `\n${severity === "note" ? head : alarming(head)}\n${aligned(
        [
          ["found", what],
          ["why", why],
          ["fix", fix],
        ],
        "  ",
      )}`;
    }),
  );
  return `${aligned(rows)}${findings.join("")}\n${lastLine(results)}\n`;
}

function lastLine(results: readonly Checked[]): string {
  const all = results.flatMap(({ findings }) => findings);
  const of = (severity: string) => all.filter((finding) => finding.severity === severity).length;
  const unseen = results.filter(({ result }) => result === "skipped").length;
  const counts = `${counted(of("error"), "error", "errors")}, ${counted(of("warning"), "warning", "warnings")}, ${counted(of("note"), "note", "notes")}`;
  return `${counts}; ${counted(unseen, "check", "checks")} could not look. Nothing was changed.`;
}
