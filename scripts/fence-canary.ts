/**
 * Plants one violation of every import fence (and of a few lint rules that matter) in a copy of the source layout, and
 * fails unless the linter catches each of them and lets the permitted imports through. A fence that silently stopped
 * matching would otherwise look exactly like clean code.
 */
import { execFile } from "node:child_process";
import { readdir, readFile } from "node:fs/promises";
import { join, relative } from "node:path";
import { promisify } from "node:util";
import { reportCheck, repositoryRoot } from "./check.ts";
import { inPlantedProject } from "./planted-project.ts";

interface Plant {
  readonly file: string;
  readonly text: string;
  /** The rule that must catch it; `null`: nothing may. */
  readonly rule: string | null;
}

const FENCE = "lint/style/noRestrictedImports";

/** Folder of the importing file → what it must not import, and what it may. */
const fences: readonly { from: string; refused: readonly string[]; allowed: readonly string[] }[] = [
  {
    from: "src/core",
    refused: [
      "node:fs",
      "zod",
      "../engine/run-result.ts",
      "../index.ts",
      "./../http/gate.ts",
      "./json/../../cli/main.ts",
    ],
    allowed: ["node:crypto", "./errors.ts", "./json/parse.ts"],
  },
  {
    from: "src/core/json",
    refused: ["../../engine/request.ts", "../../index.ts"],
    allowed: ["../errors.ts", "../body/read.ts"],
  },
  {
    from: "src/engine",
    refused: ["pg", "../http/exchange.ts", "../stores/memory/index.ts", "../sweeper/index.ts", "../index.ts"],
    allowed: ["node:timers/promises", "../core/store.ts", "./request.ts"],
  },
  {
    from: "src/http",
    refused: ["express", "../adapters/express.ts", "../stores/memory/index.ts", "../drivers/pg.ts"],
    allowed: ["../engine/request.ts", "../core/errors.ts", "./exchange.ts"],
  },
  {
    from: "src/http/profiles",
    refused: ["../../adapters/hono.ts"],
    allowed: ["../problem.ts", "../../core/errors.ts"],
  },
  {
    from: "src/adapters",
    refused: ["express", "./fastify.ts", "../stores/postgres/index.ts", "../drivers/pg.ts", "../sweeper/index.ts"],
    allowed: ["./_node.ts", "../http/exchange.ts", "../engine/request.ts", "../core/scope.ts", "node:http"],
  },
  {
    from: "src/stores/postgres",
    refused: ["pg", "../memory/index.ts", "../../engine/request.ts", "../../drivers/pg.ts"],
    allowed: ["../../core/store.ts", "./driver-port.ts"],
  },
  {
    from: "src/stores/memory",
    refused: ["../postgres/index.ts", "../../http/exchange.ts"],
    allowed: ["../../core/store.ts"],
  },
  {
    from: "src/drivers",
    refused: ["pg", "./pg.ts", "../stores/postgres/index.ts", "../core/errors.ts", "../engine/request.ts"],
    allowed: ["../stores/postgres/driver-port.ts"],
  },
  {
    from: "src/bodies",
    refused: ["@aws-sdk/client-s3", "../engine/request.ts", "../stores/postgres/index.ts"],
    allowed: ["node:fs/promises", "../core/body-store.ts", "./file.ts"],
  },
  {
    from: "src/client",
    refused: ["node:fs", "axios", "../core/canonical.ts", "../http/gate.ts", "../index.ts"],
    allowed: ["./submission.ts", "../core/errors.ts"],
  },
  {
    from: "src/sweeper",
    refused: ["../stores/postgres/index.ts", "../http/exchange.ts", "../cli/main.ts"],
    allowed: ["../engine/request.ts", "../core/store.ts"],
  },
  {
    from: "src/observe",
    refused: ["prom-client", "@opentelemetry/api", "pino", "../http/exchange.ts", "../stores/memory/index.ts"],
    allowed: ["../engine/event.ts", "../core/store.ts", "./labels.ts"],
  },
  {
    from: "src/downstream",
    refused: ["amqplib", "../stores/postgres/index.ts", "../http/exchange.ts", "../inbound/inbox.ts", "../cli/main.ts"],
    allowed: ["../engine/request.ts", "../core/store.ts", "./relay.ts"],
  },
  {
    from: "src/downstream/publishers",
    refused: ["amqplib", "kafkajs", "../../stores/memory/index.ts", "../../http/exchange.ts"],
    allowed: ["../publisher.ts", "../../core/outbox.ts"],
  },
  {
    from: "src/inbound",
    refused: ["stripe", "../stores/postgres/index.ts", "../http/exchange.ts", "../downstream/index.ts"],
    allowed: ["../engine/request.ts", "../core/delivery.ts"],
  },
  {
    from: "src/inbound/webhooks",
    refused: ["standardwebhooks", "../../stores/memory/index.ts", "../../http/exchange.ts"],
    allowed: ["../inbox.ts", "../../core/delivery.ts"],
  },
  {
    from: "src/testing",
    refused: ["vitest", "../cli/main.ts", "../adapters/express.ts"],
    allowed: ["node:assert/strict", "../core/store.ts"],
  },
  {
    from: "src/console",
    refused: [
      "express",
      "../engine/oncekey.ts",
      "../http/exchange.ts",
      "../drivers/pg.ts",
      "../cli/main.ts",
      "../index.ts",
    ],
    allowed: ["node:http", "../core/errors.ts", "../engine/event.ts", "../stores/postgres/operator/entries.ts"],
  },
  {
    from: "src/console/routes",
    refused: ["../../engine/request.ts", "../../stores/memory/index.ts", "../../observe/logs.ts"],
    allowed: ["../parts.ts", "../../core/entry.ts", "../../stores/postgres/rows.ts"],
  },
  {
    from: "src/stores/postgres/operator",
    refused: ["../../memory/index.ts", "../../../console/index.ts", "../../../engine/event.ts"],
    allowed: ["node:zlib", "../rows.ts", "../../../core/entry.ts"],
  },
  {
    from: "src/cli",
    refused: ["commander", "../testing/index.ts", "../engine/request.ts"],
    allowed: ["../stores/postgres/index.ts", "../verify/index.ts", "pg"],
  },
  {
    from: "src/cli/doctor",
    refused: ["pg", "../../testing/index.ts", "../../engine/request.ts", "../../stores/postgres/store.ts"],
    allowed: ["../../stores/postgres/index.ts", "../../core/errors.ts", "../layout.ts", "./check.ts"],
  },
  {
    from: "src/verify",
    refused: ["undici", "../http/profile.ts", "../engine/request.ts", "../index.ts", "../cli/main.ts"],
    allowed: ["node:http", "../core/errors.ts", "./report.ts"],
  },
  {
    from: "src/verify/cases",
    refused: ["undici", "../../http/profile.ts", "../../index.ts"],
    allowed: ["node:http", "../../core/errors.ts", "../report.ts", "./_send.ts"],
  },
  { from: "src/a-folder-without-a-fence", refused: ["../core/errors.ts", "zod"], allowed: ["./own.ts"] },
  {
    from: "console/src/pages",
    refused: [
      "../../../src/console/operator.ts",
      "../../../src/core/errors.ts",
      "oncekey",
      "oncekey/console",
      "node:fs",
    ],
    allowed: ["../parts/table.tsx", "preact", "uplot"],
  },
  {
    from: "examples/payments",
    refused: ["../../src/index.ts", "../../dist/index.js"],
    allowed: ["oncekey", "./psp.ts"],
  },
  {
    from: "test/conformance",
    refused: ["../../src/core/store.ts"],
    allowed: ["oncekey/testing", "../support/postgres.ts"],
  },
  { from: "test/e2e", refused: ["../../src/index.ts"], allowed: ["oncekey"] },
];

/** The forms in which an import can be written. */
const forms: readonly ((specifier: string) => string)[] = [
  (s) => `import { x } from "${s}";\nexport const y = x;\n`,
  (s) => `import type { X } from "${s}";\nexport type Y = X;\n`,
  (s) => `export * from "${s}";\n`,
  (s) => `export { x } from "${s}";\n`,
  (s) => `export const x = () => import("${s}");\n`,
];

function fencePlants(sourceFolders: readonly string[]): Plant[] {
  const plants: Plant[] = [];
  const plant = (from: string, specifier: string, form: number, rule: string | null) => {
    const text = forms[form]?.(specifier) ?? "";
    plants.push({ file: `${from}/planted-${plants.length}.ts`, text, rule });
  };
  for (const { from, refused, allowed } of fences) {
    for (const specifier of refused) for (const form of forms.keys()) plant(from, specifier, form, FENCE);
    for (const specifier of allowed) plant(from, specifier, 0, null);
  }
  // Whatever folders exist by now: none may be outside every fence.
  for (const folder of sourceFolders) plant(folder, "left-pad", 0, FENCE);
  return plants;
}

const rulePlants: readonly Plant[] = [
  { file: "src/core/any.ts", text: "export const x: any = 1;\n", rule: "lint/suspicious/noExplicitAny" },
  { file: "src/http/default.ts", text: "export default 1;\n", rule: "lint/style/noDefaultExport" },
  { file: "src/engine/log.ts", text: 'console.log("secret");\n', rule: "lint/suspicious/noConsole" },
  {
    file: "src/engine/extension.ts",
    text: 'export { y } from "./target";\n',
    rule: "lint/correctness/useImportExtensions",
  },
  { file: "src/engine/target.ts", text: "export const y = 1;\n", rule: null },
  {
    file: "src/engine/floating.ts",
    text: "async function f(): Promise<number> {\n  return 1;\n}\nexport function g(): void {\n  f();\n}\n",
    rule: "lint/nursery/noFloatingPromises",
  },
  {
    file: "src/engine/cycle-a.ts",
    text: 'import { b } from "./cycle-b.ts";\nexport const a = () => b();\n',
    rule: "lint/suspicious/noImportCycles",
  },
  {
    file: "src/engine/cycle-b.ts",
    text: 'import { a } from "./cycle-a.ts";\nexport const b = (): unknown => a();\n',
    rule: "lint/suspicious/noImportCycles",
  },
];

async function foldersUnder(folder: string): Promise<string[]> {
  const entries = await readdir(join(repositoryRoot, folder), { withFileTypes: true });
  const children = entries.filter((entry) => entry.isDirectory()).map((entry) => `${folder}/${entry.name}`);
  return [folder, ...(await Promise.all(children.map(foldersUnder))).flat()];
}

async function lint(folder: string): Promise<Set<string>> {
  const biome = join(repositoryRoot, "node_modules/.bin/biome");
  const flags = ["lint", "--vcs-enabled=false", "--max-diagnostics=none", "--reporter=json", "."];
  const run = promisify(execFile)(biome, flags, { cwd: folder, maxBuffer: 64 * 1024 * 1024 });
  // Findings make it exit with 1; only its report counts.
  const { stdout } = await run.catch((error: { stdout: string }) => error);
  const report = JSON.parse(stdout) as {
    diagnostics: { category: string; location: { path: string | { file: string } } }[];
  };
  return new Set(report.diagnostics.map(({ category, location }) => `${pathOf(folder, location.path)} ${category}`));
}

function pathOf(folder: string, path: string | { file: string }): string {
  const name = typeof path === "string" ? path : path.file;
  return name.startsWith("/") ? relative(folder, name) : name.replace(/^\.\//, "");
}

async function findings(plants: readonly Plant[]): Promise<Set<string>> {
  const files = Object.fromEntries(plants.map(({ file, text }) => [file, text]));
  const config = await readFile(join(repositoryRoot, "biome.json"), "utf8");
  return inPlantedProject({ ...files, "biome.json": config }, lint);
}

function problemOf(plant: Plant, found: ReadonlySet<string>): string | null {
  const fenced = found.has(`${plant.file} ${FENCE}`);
  if (plant.rule === null) return fenced ? `a permitted import was refused: ${plant.file}\n${plant.text}` : null;
  return found.has(`${plant.file} ${plant.rule}`) ? null : `${plant.rule} missed ${plant.file}:\n${plant.text}`;
}

const plants = [...fencePlants(await foldersUnder("src")), ...rulePlants];
const found = await findings(plants);
const problems = plants.map((plant) => problemOf(plant, found)).filter((problem) => problem !== null);
reportCheck("fence canary", `${plants.length} plants judged as they should be`, problems);
