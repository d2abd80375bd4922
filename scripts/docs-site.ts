/**
 * The documentation as a site: every page of docs/, and the reference of the whole public surface, made from the doc comments.
 *
 *   npm run docs             builds it and serves it on http://127.0.0.1:4080 (PORT, 0: any free one) until Ctrl-C
 *   npm run docs -- --build  builds it only
 *
 * It ends with exit code 1 where a link leads nowhere.
 */
import { readdir } from "node:fs/promises";
import type { AddressInfo } from "node:net";
import { join, relative } from "node:path";
import express from "express";
import {
  Application,
  Converter,
  type DeclarationReflection,
  type DocumentReflection,
  ReflectionKind,
  type TypeDocOptions,
} from "typedoc";
import { repositoryRoot } from "./check.ts";
import { exportedSources } from "./public-surface.ts";

const OUT = join(repositoryRoot, ".docs-site");
/** The public surface: its sources by the name that is imported. */
const sources = exportedSources();

/** Calls a module by what is imported: by itself it is named after its file. */
function named(module: DeclarationReflection): void {
  for (const [name, source] of sources) {
    const file = relative(join(repositoryRoot, "src"), source).slice(0, -".ts".length);
    if (module.name === file || `${module.name}/index` === file) module.name = name;
  }
}

/** Where a page stands in the navigation, by its name; every page of docs/ has a place. */
const GROUPS: Readonly<Record<string, readonly string[]>> = {
  Begin: ["guide", "run-kinds", "frameworks", "drivers", "migrating", "compatibility", "faq"],
  "Requests and answers": ["http", "dialects", "client", "openapi", "errors", "stored-content"],
  "Past the request": [
    "recovery",
    "outside-calls",
    "reference",
    "outbox",
    "publishers",
    "inbox",
    "consumers",
    "webhooks",
  ],
  Operate: ["operating", "console", "postgres", "cli", "observe", "scale"],
  Proof: [
    ...["guarantees", "proof", "exploring", "lab", "canaries", "fuzzing", "faults", "verify", "testing"],
    ...["benchmarks", "benchmarks-micro"],
  ],
  Reference: ["options", "exports", "architecture"],
  Dialects: [],
  Problems: [],
};

/** Paths in docs/ without their ending, in the order of the groups, each with its group. Raises where one has no place. */
async function placedPages(): Promise<ReadonlyMap<string, string>> {
  const under = async (folder: string) =>
    (await readdir(join(repositoryRoot, "docs", folder)))
      .flatMap((name) => (name.endsWith(".md") ? [name.slice(0, -3)] : []))
      .sort();
  const placed = new Map(Object.entries(GROUPS).flatMap(([group, names]) => names.map((name) => [name, group])));
  const lost = (await under("")).filter((name) => !placed.has(name));
  if (lost.length > 0) throw new Error(`Give each page of docs/ its place in GROUPS: ${lost.join(", ")}`);
  for (const name of await under("dialects")) placed.set(`dialects/${name}`, "Dialects");
  for (const name of await under("problems")) placed.set(`problems/${name}`, "Problems");
  return placed;
}

/** Calls a page by its heading instead of its file, and puts it into its group. */
function place(page: DocumentReflection, pages: ReadonlyMap<string, string>): void {
  const group = pages.get(page.name) ?? "Reference";
  const text = page.content.map((part) => part.text).join("");
  page.name = /^# (.+)$/m.exec(text)?.[1]?.replaceAll("`", "") ?? page.name;
  page.frontmatter.group = group;
}

function optionsFor(pages: ReadonlyMap<string, string>): Partial<TypeDocOptions> {
  return {
    name: "Oncekey",
    readme: join(repositoryRoot, "README.md"),
    entryPoints: [...sources.values()],
    projectDocuments: [...pages.keys()].map((name) => join(repositoryRoot, "docs", `${name}.md`)),
    navigation: { includeGroups: true },
    groupOrder: [...Object.keys(GROUPS), "*"],
    sort: ["documents-first", "source-order"],
    tsconfig: join(repositoryRoot, "tsconfig.json"),
    out: OUT,
    // Types are the checks' business, which have looked at all of it.
    skipErrorChecking: true,
    excludePrivate: true,
    excludeExternals: true,
    disableSources: true,
    hideGenerator: true,
    // Folders are no files to TypeDoc; that relative links lead somewhere is shown by a test of docs.
    validation: { invalidLink: true, invalidPath: false, notExported: false },
    highlightLanguages: [
      ...["typescript", "tsx", "javascript", "json", "jsonc", "bash", "sh", "sql", "http", "yaml", "html", "text"],
      ...["python", "xml", "graphql", "ini", "diff", "console"],
    ],
  };
}

async function build(): Promise<boolean> {
  const pages = await placedPages();
  const app = await Application.bootstrap(optionsFor(pages));
  app.converter.on(Converter.EVENT_CREATE_DOCUMENT, (_context, page) => place(page, pages));
  app.converter.on(Converter.EVENT_CREATE_DECLARATION, (_context, reflection) => {
    if (reflection.kindOf(ReflectionKind.Module)) named(reflection);
  });
  const project = await app.convert();
  if (project === undefined) return false;
  app.validate(project);
  await app.generateOutputs(project);
  return app.logger.errorCount === 0 && app.logger.warningCount === 0;
}

function serve(): void {
  const server = express()
    .disable("x-powered-by")
    .use(express.static(OUT))
    .listen(Number(process.env.PORT ?? 4080), "127.0.0.1", () => {
      console.log(`Oncekey's documentation: http://127.0.0.1:${(server.address() as AddressInfo).port}`);
    });
}

const isWhole = await build();
if (process.argv.includes("--build")) process.exitCode = isWhole ? 0 : 1;
else serve();
