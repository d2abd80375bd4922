import type { CaseReport, RunReport } from "./run.ts";

/**
 * The report as JUnit XML, for CI servers: a failed case is a failure, one that does not apply or cannot be told is
 * skipped, with its reason.
 */
export function junitXml({ target, startedAt, tookMs, counts, cases }: RunReport): string {
  const skipped = counts["not-applicable"] + counts["cannot-tell"];
  const attributes = {
    name: `oncekey verify ${target.method} ${target.url} (${target.profile})`,
    tests: cases.length,
    failures: counts.fail,
    errors: 0,
    skipped,
    time: seconds(tookMs),
    timestamp: startedAt.toISOString(),
  };
  const suite = `${open("testsuite", attributes)}\n${cases.map(testcase).join("")}</testsuite>`;
  return `<?xml version="1.0" encoding="UTF-8"?>\n<testsuites>\n${suite}\n</testsuites>\n`;
}

function testcase({ id, title, level, why, verdict, seen, tookMs }: CaseReport): string {
  const head = open("testcase", {
    classname: `oncekey.verify.${level}`,
    name: `${id}: ${title}`,
    time: seconds(tookMs),
  });
  return `${head}${outcome(verdict, seen, why)}</testcase>\n`;
}

function outcome(verdict: CaseReport["verdict"], seen: string, why: string): string {
  if (verdict === "pass") return `<system-out>${escaped(seen)}</system-out>`;
  if (verdict === "fail") return `${open("failure", { message: seen, type: "fail" })}${escaped(why)}</failure>`;
  return `${open("skipped", { message: `${verdict}: ${seen}` })}</skipped>`;
}

function open(name: string, attributes: Readonly<Record<string, string | number>>): string {
  const written = Object.entries(attributes).map(([key, value]) => ` ${key}="${escaped(String(value))}"`);
  return `<${name}${written.join("")}>`;
}

const seconds = (ms: number): string => (ms / 1_000).toFixed(3);

const ENTITIES: ReadonlyMap<string, string> = new Map([
  ["&", "&amp;"],
  ["<", "&lt;"],
  [">", "&gt;"],
  ['"', "&quot;"],
]);

/** What XML 1.0 cannot hold at all becomes U+FFFD; the rest is escaped where it means something. */
function escaped(text: string): string {
  return text
    .toWellFormed()
    .replace(/[^\t\n\r\u{20}-\u{D7FF}\u{E000}-\u{FFFD}\u{10000}-\u{10FFFF}]/gu, "\u{FFFD}")
    .replace(/[&<>"]/g, (found) => ENTITIES.get(found) ?? "")
    .replace(/[\t\n\r]/g, (found) => `&#${found.charCodeAt(0)};`);
}
