import { execFile } from "node:child_process";
import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";

const root = fileURLToPath(new URL("../..", import.meta.url));
const tool = (path: string) => join(root, "node_modules", path);

/** What users may import: the list of docs/exports.md, written down once more so that no subpath appears by accident. */
const subpaths = [
  "oncekey",
  "oncekey/bodies/file",
  "oncekey/bodies/s3",
  "oncekey/client",
  "oncekey/client/file",
  "oncekey/client/form",
  "oncekey/client/hooks",
  "oncekey/client/indexeddb",
  "oncekey/client/local-storage",
  "oncekey/console",
  "oncekey/drivers/drizzle",
  "oncekey/drivers/knex",
  "oncekey/drivers/kysely",
  "oncekey/drivers/mikro-orm",
  "oncekey/drivers/pg",
  "oncekey/drivers/pglite",
  "oncekey/drivers/postgres-js",
  "oncekey/drivers/prisma",
  "oncekey/drivers/sequelize",
  "oncekey/drivers/typeorm",
  "oncekey/express",
  "oncekey/fastify",
  "oncekey/fetch",
  "oncekey/graphql",
  "oncekey/h3",
  "oncekey/hono",
  "oncekey/inbox",
  "oncekey/koa",
  "oncekey/lambda",
  "oncekey/logs",
  "oncekey/memory",
  "oncekey/nest",
  "oncekey/next",
  "oncekey/node",
  "oncekey/otel",
  "oncekey/outbox",
  "oncekey/postgres",
  "oncekey/prometheus",
  "oncekey/publishers/kafka",
  "oncekey/publishers/nats",
  "oncekey/publishers/rabbitmq",
  "oncekey/publishers/redis",
  "oncekey/publishers/sqs",
  "oncekey/publishers/webhook",
  "oncekey/sweeper",
  "oncekey/testing",
  "oncekey/trpc",
  "oncekey/webhooks",
];

interface Packed {
  readonly filename: string;
  readonly size: number;
  readonly unpackedSize: number;
  readonly files: readonly { readonly path: string }[];
}

interface Manifest {
  readonly exports: Readonly<Record<string, string | Readonly<Record<string, string>>>>;
  readonly bin: Readonly<Record<string, string>>;
  readonly [member: string]: unknown;
}

/** Runs a program to its end; its whole output, or an error that carries it. */
async function run(cwd: string, program: string, args: readonly string[]): Promise<string> {
  const options = { cwd, maxBuffer: 64 * 1024 * 1024, env: { ...process.env, NODE_OPTIONS: "", NODE_PATH: "" } };
  return promisify(execFile)(program, [...args], options).then(
    ({ stdout }) => stdout,
    (error: { stdout: string; stderr: string }) => {
      throw new Error(`${program} ${args.join(" ")} failed:\n${error.stdout}\n${error.stderr}`);
    },
  );
}

const consumerSource = `
import { created, createOncekey, reject, OncekeyError, type Operation } from "oncekey";
import { memoryStore } from "oncekey/memory";
${subpaths.map((name, index) => `import * as m${index} from "${name}";`).join("\n")}

export const everything: readonly object[] = [${subpaths.map((_, index) => `m${index}`).join(", ")}];
const once = createOncekey({ store: memoryStore() });
export const createInvoice: Operation<"transaction"> = once.transaction({
  name: "invoices.create",
  version: 1,
  async run({ tx, scope }) {
    // @ts-expect-error the transaction is the store's own type, not any
    tx.noSuchMethod();
    return scope.client === null ? reject(422, { code: "no_client" }) : created("/v1/invoices/1", { id: 1n });
  },
});
export const isOurs = (error: unknown): boolean => error instanceof OncekeyError;
`;

const compilerOptions = {
  target: "ES2023",
  lib: ["ES2023"],
  strict: true,
  exactOptionalPropertyTypes: true,
  skipLibCheck: false,
  noEmit: true,
  types: ["node"],
  typeRoots: [tool("@types")],
};

let folder = "";
let packed: Packed;
let manifest: Manifest;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "oncekey-package-"));
  // The package's prepack script builds it first.
  await run(root, "npm", ["run", "build"]);
  const report = await run(root, "npm", ["pack", "--json", "--ignore-scripts", "--pack-destination", folder]);
  packed = firstPacked(JSON.parse(report));
  await mkdir(join(folder, "consumer"));
  await writeFile(join(folder, "consumer/package.json"), JSON.stringify({ name: "consumer", type: "module" }));
  const quiet = ["--offline", "--no-audit", "--no-fund", "--no-package-lock"];
  await run(join(folder, "consumer"), "npm", ["install", ...quiet, join(folder, packed.filename)]);
  manifest = JSON.parse(await readFile(join(folder, "consumer/node_modules/oncekey/package.json"), "utf8"));
}, 180_000);

afterAll(async () => {
  await rm(folder, { recursive: true, force: true });
});

/** npm 11 answers a list, npm 12 an object by package name. */
function firstPacked(report: unknown): Packed {
  const [first] = Object.values(report as Record<string, Packed>);
  if (first === undefined) throw new Error("npm pack reported no package");
  return first;
}

describe("the package", () => {
  it("exports exactly the documented subpaths", () => {
    const exported = Object.keys(manifest.exports).filter((name) => name !== "./package.json");
    expect(exported.map((name) => `oncekey${name.slice(1)}`).sort()).toEqual(subpaths);
  });

  it("ships every file that its exports and its command name", () => {
    const shipped = new Set(packed.files.map(({ path }) => path));
    const targets = Object.values(manifest.exports).flatMap((target) =>
      typeof target === "string" ? [target] : Object.values(target),
    );
    const named = [...targets, ...Object.values(manifest.bin)].map((target) => target.replace(/^\.\//, ""));
    expect(named.filter((target) => !shipped.has(target))).toEqual([]);
  });

  it("ships code, sources, SQL and nothing else", () => {
    const allowed =
      /^(dist\/.+\.(js|d\.ts)(\.map)?|dist\/console\/static\/(index\.html|licenses\.txt|assets\/.+\.(js|css))|src\/.+\.ts|sql\/.+\.sql|package\.json|README\.md|CHANGELOG\.md|LICENSE)$/;
    const paths = packed.files.map(({ path }) => path);
    expect(paths.filter((path) => !allowed.test(path) || /\.(test|spec|test-d)\./.test(path))).toEqual([]);
    expect(paths).toContain("CHANGELOG.md");
    console.log(`package size: ${Math.round(packed.size / 1024)} kB packed, ${packed.files.length} files`);
  });

  it("ships the console's page with all that it names, and the licences of what is in it", async () => {
    const shipped = new Set(packed.files.map(({ path }) => path));
    const page = await readFile(join(root, "dist/console/static/index.html"), "utf8");
    const named = [...page.matchAll(/(?:src|href)="\.\/([^"]+)"/g)].map(([, path]) => `dist/console/static/${path}`);
    expect(named.map((path) => path.replace(/.*\./, "")).sort()).toEqual(["css", "js"]);
    expect([...named, "dist/console/static/licenses.txt"].filter((path) => !shipped.has(path))).toEqual([]);
  });

  it("depends on nothing", () => {
    const kinds = ["dependencies", "peerDependencies", "optionalDependencies", "bundleDependencies"];
    expect(kinds.filter((kind) => Object.keys((manifest[kind] ?? {}) as object).length > 0)).toEqual([]);
  });

  it.each(subpaths)("imports %s under plain Node", async (subpath) => {
    const code = `const m = await import(${JSON.stringify(subpath)}); console.log(Object.keys(m).length)`;
    const printed = await run(join(folder, "consumer"), process.execPath, ["--input-type=module", "-e", code]);
    expect(Number(printed)).toBeGreaterThan(0);
  });

  it.each([
    ["NodeNext", "NodeNext"],
    ["Preserve", "Bundler"],
  ])("type-checks in a project with module %s, resolution %s", async (module, moduleResolution) => {
    const project = join(folder, "consumer", `tsconfig.${moduleResolution}.json`);
    const options = { ...compilerOptions, module, moduleResolution };
    await writeFile(join(folder, "consumer/consumer.ts"), consumerSource);
    await writeFile(project, JSON.stringify({ compilerOptions: options, files: ["consumer.ts"] }));
    await run(dirname(project), process.execPath, [tool("typescript/bin/tsc"), "-p", project]);
  });

  it("has a command that prints its help", async () => {
    const printed = await run(join(folder, "consumer"), join("node_modules", ".bin", "oncekey"), ["--help"]);
    expect(printed).toContain("migrate");
  });

  it("satisfies publint", async () => {
    const cli = tool("publint/src/cli.js");
    await run(root, process.execPath, [cli, "run", "--strict", join(folder, packed.filename)]);
  });

  it("resolves its types in every ESM resolution mode", async () => {
    const cli = tool("@arethetypeswrong/cli/dist/index.js");
    await run(root, process.execPath, [cli, join(folder, packed.filename), "--profile", "esm-only"]);
  });
});
