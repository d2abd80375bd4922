import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { verifyCommand } from "../../src/cli/verify.ts";
import { reportText } from "../../src/cli/verify-text.ts";
import type { CaseReport, RunReport } from "../../src/verify/index.ts";
import { caseTexts, dialects, junitXml } from "../../src/verify/index.ts";

const page = readFileSync(new URL("../../docs/verify.md", import.meta.url), "utf8");

describe("docs/verify.md", () => {
  it("has a row for every case, with its title and why it matters, and no other", () => {
    const rows = [...page.matchAll(/^\| `([a-z0-9-]+)` \| (.*?) \| (safety|dialect|practice) \| (.*?) \|$/gm)];
    const said = rows.map(([, id, title, level, why]) => ({ id, title, level, why }));
    expect(said).toEqual(caseTexts.map(({ id, title, level, why }) => ({ id, title, level, why })));
  });

  it("has every option, and the help shows the request of the page", () => {
    const { help: _, ...options } = verifyCommand.options;
    expect(Object.keys(options).filter((name) => !page.includes(`\`--${name}`))).toEqual([]);
    const [body] = /--body '\{.*\}'/.exec(page) ?? [];
    expect(verifyCommand.examples[0]).toContain(body);
  });

  it("names every profile and its source", () => {
    for (const { name, source } of dialects.values()) expect(page).toContain(`| \`${name}\` | ${source} |`);
  });
});

/** Raises where the text is not well-formed: names match, attributes are quoted, nothing stands bare. */
function elementsOf(xml: string): { readonly name: string; readonly attributes: Record<string, string> }[] {
  const found: { readonly name: string; readonly attributes: Record<string, string> }[] = [];
  const open: string[] = [];
  const rest = xml.replace(/^<\?xml [^<>]*\?>\n/, "");
  const token = /<(\/?)([a-z-]+)((?: [a-z]+="[^"<]*")*)>|([^<>&]|&(?:amp|lt|gt|quot|#\d+);)+/y;
  for (let at = 0; at < rest.length; at = token.lastIndex) {
    token.lastIndex = at;
    const match = token.exec(rest);
    if (match === null) throw new Error(`not well-formed at ${at}: ${rest.slice(at, at + 40)}`);
    const [, slash, name = "", attributes = ""] = match;
    if (slash === "/" && open.pop() !== name) throw new Error(`</${name}> does not fit`);
    if (slash !== "") continue;
    open.push(name);
    const pairs = [...attributes.matchAll(/ ([a-z]+)="([^"]*)"/g)].map(([, key, value]) => [key, value]);
    found.push({ name, attributes: Object.fromEntries(pairs) });
  }
  if (open.length > 0) throw new Error(`${open.join()} is not closed`);
  return found;
}

describe("the report as JUnit XML", () => {
  const hostile = 'a "quoted" <b> & \u0007\ud800 ]]>\n';
  const one = (verdict: CaseReport["verdict"]): CaseReport => ({
    ...{ id: verdict, title: hostile, level: "safety" as const, why: hostile, seen: hostile, verdict, tookMs: 1_500 },
  });
  const report: RunReport = {
    target: { url: "http://127.0.0.1/?a=1&b=2", method: "POST", profile: "ietf", source: "somewhere" },
    startedAt: new Date(0),
    tookMs: 2_000,
    requests: 3,
    counts: { pass: 1, fail: 1, "not-applicable": 1, "cannot-tell": 1 },
    cases: (["pass", "fail", "not-applicable", "cannot-tell"] as const).map(one),
  };

  it("is well-formed whatever was seen, and counts as CI servers do", () => {
    const xml = junitXml(report);
    expect(xml).not.toContain("\u0007");
    expect(xml.isWellFormed()).toBe(true);
    const elements = elementsOf(xml);
    expect(elements.filter(({ name }) => name === "testcase")).toHaveLength(4);
    expect(elements.filter(({ name }) => name === "skipped")).toHaveLength(2);
    const [suite] = elements.filter(({ name }) => name === "testsuite");
    expect(suite?.attributes).toMatchObject({ tests: "4", failures: "1", errors: "0", skipped: "2", time: "2.000" });
    const [failure] = elements.filter(({ name }) => name === "failure");
    expect(failure?.attributes.message).toBe("a &quot;quoted&quot; &lt;b&gt; &amp; \u{FFFD}\u{FFFD} ]]&gt;&#10;");
  });
});

describe("the report for people", () => {
  const accepted = caseTexts.filter(({ id }) => id === "accepted");
  const textOf = (verdict: CaseReport["verdict"], requests: number) =>
    reportText({
      target: { url: "http://127.0.0.1/", method: "POST", profile: "ietf", source: "somewhere" },
      startedAt: new Date(0),
      tookMs: 2_000,
      requests,
      counts: { pass: 0, fail: 0, "not-applicable": 0, "cannot-tell": 0, [verdict]: 1 },
      cases: accepted.map((each) => ({ ...each, verdict, seen: "It got 401.", tookMs: 1 })),
    });

  it("says what to check where the given request is not accepted, and only there", () => {
    const advice = "\n                Check URL, --header and --body; try the same request with curl.\n";
    expect(textOf("fail", 1)).toContain(advice);
    expect(textOf("pass", 1)).not.toContain("curl");
  });

  it("counts one request as one", () => {
    expect(textOf("fail", 1)).toContain("; 1 request in 2 s\n");
    expect(textOf("pass", 2)).toContain("; 2 requests in 2 s\n");
  });
});
