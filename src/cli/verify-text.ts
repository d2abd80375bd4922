import { styleText } from "node:util";
import type { CaseReport, Plan, RunReport, Target, Verdict } from "../verify/index.ts";
import { aligned, counted, duration, visible } from "./layout.ts";

const COLOURS: Readonly<Record<Verdict, "green" | "red" | "gray" | "yellow">> = {
  pass: "green",
  fail: "red",
  "not-applicable": "gray",
  "cannot-tell": "yellow",
};

/** Coloured on a terminal; plain where the output goes elsewhere or NO_COLOR is set (no-color.org). */
function coloured(verdict: Verdict, text: string): string {
  return process.stdout.isTTY && !process.env.NO_COLOR ? styleText(COLOURS[verdict], text) : text;
}

const countedRequests = (count: number): string => counted(count, "request", "requests");

const INDENT = " ".repeat(16);
const WIDTH = 84;

/** The report for people: each case with what was seen, and why it matters where it did not pass. */
export function reportText({ target, cases, counts, requests, tookMs }: RunReport): string {
  const head = `${target.method} ${target.url}\nprofile ${target.profile}: ${target.source}\n`;
  const foot =
    `${counts.pass} passed, ${counts.fail} failed, ${counts["cannot-tell"]} cannot be told from outside, ` +
    `${counts["not-applicable"]} not applicable; ${countedRequests(requests)} in ${duration(tookMs)}\n`;
  return `${head}\n${cases.map(caseText).join("")}\n${foot}`;
}

/** The first thing that goes wrong is a command line, not an API. */
const CHECK = "Check URL, --header and --body; try the same request with curl.";

function caseText({ id, title, level, verdict, seen, why }: CaseReport): string {
  const head = `${coloured(verdict, verdict.padEnd(INDENT.length - 2))}  ${id}: ${title}\n`;
  const reason = verdict === "fail" || verdict === "cannot-tell" ? indented(`Why it matters (${level}): ${why}`) : "";
  const advice = id === "accepted" && verdict === "fail" ? indented(CHECK) : "";
  return `${head}${indented(visible(seen))}${reason}${advice}`;
}

function indented(text: string): string {
  const lines: string[] = [];
  let line = "";
  for (const word of text.split(" ")) {
    if (line !== "" && line.length + word.length >= WIDTH) {
      lines.push(line);
      line = "";
    }
    line = line === "" ? word : `${line} ${word}`;
  }
  return [...lines, line].map((each) => `${INDENT}${each}\n`).join("");
}

/** What a run would try, for `--dry-run`. */
export function planText({ url, method, dialect }: Target, { cases, sends, runs }: Plan): string {
  const rows = cases.map(({ id, title, excluded, sends: count }) => {
    const cost = count === 0 ? "judges requests of others" : countedRequests(count);
    return [id, `${title} (${excluded ?? cost})`] as const;
  });
  return `${method} ${url.origin}${url.pathname}, profile ${dialect.name}

${aligned(rows, "  ")}
About ${countedRequests(sends)}, of which an API that passes carries out about ${runs}. Nothing was sent.
`;
}
