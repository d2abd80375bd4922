/**
 * Writes the tables of docs/ that say what the code says: error codes and problems, options, exports, versions,
 * profiles, the campaigns' figures. Each stands between
 * `<!-- table: name -->` and `<!-- /table -->`; the prose around them is written by hand. `--check` only compares.
 */
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { canariesTable } from "../lab/canaries/docs-table.ts";
import { codes } from "../src/core/errors.ts";
import { EVENT_MEANINGS } from "../src/engine/event.ts";
import { INSTRUMENTS, prometheusName } from "../src/observe/instruments.ts";
import { reportCheck, repositoryRoot } from "./check.ts";
import { benchmarkTables } from "./docs-benchmarks.ts";
import { compatibilityTable } from "./docs-compatibility.ts";
import { problemHeads } from "./docs-problems.ts";
import { profilesTable } from "./docs-profiles.ts";
import { proofSections } from "./docs-proof.ts";
import { scaleTables } from "./docs-scale.ts";
import { markdownTable } from "./markdown-table.ts";
import { type OptionsInterface, type PublicSurface, readPublicSurface } from "./public-surface.ts";

function clientCodes(): string {
  const rows = Object.entries(codes).flatMap(([code, row]) =>
    row.audience === "client" ? [[`[\`${code}\`](problems/${code}.md)`, String(row.status), row.retry, row.title]] : [],
  );
  return markdownTable(["code", "status", "retry", "title"], rows);
}

function developerCodes(): string {
  const rows = Object.entries(codes).flatMap(([code, row]) =>
    row.audience === "developer" ? [[`\`${code}\``, row.title]] : [],
  );
  return markdownTable(["code", "title"], rows);
}

function eventsTable(): string {
  const rows = Object.entries(EVENT_MEANINGS).map(([kind, meaning]) => [`\`${kind}\``, meaning]);
  return markdownTable(["event", "what happened"], rows);
}

function metricsTable(): string {
  const rows = Object.entries(INSTRUMENTS).map(([name, row]) => [
    `\`${name}\``,
    `\`${prometheusName(name, row)}\``,
    row.kind,
    row.labels.map((label) => `\`${label}\``).join(", "),
    row.help,
  ]);
  return markdownTable(["metric", "in Prometheus", "kind", "labels", "what it says"], rows);
}

function optionsOf({ name, extends: bases, doc, options }: OptionsInterface): string {
  const extending = bases.length === 0 ? "" : `All of ${bases.map((base) => `\`${base}\``).join(", ")}, and:\n\n`;
  const rows = options.map((option) => [
    `\`${option.name}\``,
    `\`${option.type}\``,
    option.required ? "yes" : "",
    option.doc,
  ]);
  return `### ${name}\n\n${doc}\n\n${extending}${markdownTable(["option", "type", "required", "meaning"], rows)}`;
}

/** The first sentence: up to a full stop that ends the text or is followed by a capital letter, a backtick or a bracket. */
function firstSentence(doc: string): string {
  return /^.*?[.?!](?=\s+[A-Z`(]|\s*$)/.exec(doc)?.[0] ?? doc;
}

const kindOrder = ["function", "constant", "class", "type"];

function exportsOf({ subpaths }: PublicSurface): string {
  const sections = subpaths.map(({ name, exports }) => {
    const sorted = exports.toSorted((a, b) => kindOrder.indexOf(a.kind) - kindOrder.indexOf(b.kind));
    const rows = sorted.map((item) => [`\`${item.name}\``, item.kind, firstSentence(item.doc)]);
    return `## \`${name}\`\n\n${markdownTable(["export", "kind", "what it is"], rows)}`;
  });
  return sections.join("\n\n");
}

function withTables(page: string, text: string, tables: ReadonlyMap<string, string>): string {
  const seen = new Set<string>();
  const result = text.replace(/(<!-- table: (\S+) -->\n)[\s\S]*?(<!-- \/table -->)/g, (_, open, name, close) => {
    seen.add(name);
    const body = tables.get(name);
    if (body === undefined) throw new Error(`${page} asks for a table that does not exist: ${name}`);
    return `${open}\n${body}\n\n${close}`;
  });
  const unused = [...tables.keys()].filter((name) => !seen.has(name));
  if (unused.length > 0) throw new Error(`${page} lacks the table ${unused.join(", ")}`);
  return result;
}

function pages(surface: PublicSurface): ReadonlyMap<string, ReadonlyMap<string, string>> {
  const options = surface.optionsInterfaces.map(optionsOf).join("\n\n");
  return new Map([
    [
      "docs/errors.md",
      new Map([
        ["client", clientCodes()],
        ["developer", developerCodes()],
      ]),
    ],
    [
      "docs/observe.md",
      new Map([
        ["events", eventsTable()],
        ["metrics", metricsTable()],
      ]),
    ],
    ["docs/options.md", new Map([["options", options]])],
    ["docs/exports.md", new Map([["exports", exportsOf(surface)]])],
    ["docs/compatibility.md", new Map([["versions", compatibilityTable()]])],
    ["docs/dialects.md", new Map([["profiles", profilesTable()]])],
    ["docs/canaries.md", new Map([["canaries", canariesTable()]])],
    ["docs/proof.md", new Map([["proof", proofSections()]])],
    ["docs/benchmarks.md", benchmarkTables()],
    ["docs/scale.md", scaleTables()],
    ...[...problemHeads()].map(([page, head]) => [page, new Map([["problem", head]])] as const),
  ]);
}

async function updatePage(page: string, tables: ReadonlyMap<string, string>, check: boolean): Promise<string[]> {
  const path = join(repositoryRoot, page);
  const text = await readFile(path, "utf8");
  const updated = withTables(page, text, tables);
  if (updated === text) return [];
  if (check) return [`${page} is not what the code says; run npm run docs:tables`];
  await writeFile(path, updated);
  console.log(`docs tables: wrote ${page}`);
  return [];
}

function undocumented({ optionsInterfaces }: PublicSurface): string[] {
  return optionsInterfaces.flatMap(({ name, options }) =>
    options.filter(({ doc }) => doc === "").map((option) => `${name}.${option.name} has no doc comment`),
  );
}

const surface = readPublicSurface();
const problems = undocumented(surface);
for (const [page, tables] of pages(surface)) {
  problems.push(...(await updatePage(page, tables, process.argv.includes("--check"))));
}
const count = surface.subpaths.reduce((sum, { exports }) => sum + exports.length, 0);
reportCheck("docs tables", `${count} exports in ${surface.subpaths.length} subpaths`, problems);
