import { readFileSync } from "node:fs";
import { join } from "node:path";
import { repositoryRoot } from "./check.ts";
import { markdownTable } from "./markdown-table.ts";

/** Where versions are pinned: the repository, and projects of their own for what cannot be installed beside it. */
const projects = [
  ".",
  "test/peers/nest11",
  "test/peers/prisma6",
  "test/peers/prisma7",
  "examples/frameworks/next",
  "examples/frameworks/nitro",
];

/** Subpath → the libraries it is tested with; `[]`: it needs none but Node. A package under another name is `name=alias`. */
const libraries: Readonly<Record<string, readonly string[]>> = {
  express: ["express", "express=express4"],
  fastify: ["fastify"],
  hono: ["hono", "@hono/node-server"],
  fetch: [],
  node: [],
  koa: ["koa", "@koa/router"],
  nest: ["@nestjs/core", "@nestjs/platform-express", "@nestjs/platform-fastify"],
  next: ["next"],
  h3: ["h3", "nitro"],
  trpc: ["@trpc/server", "@trpc/client"],
  graphql: ["graphql", "graphql-yoga"],
  lambda: ["@types/aws-lambda"],
  "drivers/pg": ["pg"],
  "drivers/postgres-js": ["postgres"],
  "drivers/pglite": ["@electric-sql/pglite"],
  "drivers/kysely": ["kysely"],
  "drivers/drizzle": ["drizzle-orm"],
  "drivers/prisma": ["@prisma/client", "@prisma/adapter-pg"],
  "drivers/typeorm": ["typeorm"],
  "drivers/knex": ["knex"],
  "drivers/mikro-orm": ["@mikro-orm/core", "@mikro-orm/postgresql"],
  "drivers/sequelize": ["sequelize"],
  "publishers/webhook": ["standardwebhooks"],
  "publishers/rabbitmq": ["amqplib"],
  "publishers/nats": ["@nats-io/jetstream", "@nats-io/transport-node"],
  "publishers/redis": ["ioredis"],
  "publishers/sqs": ["@aws-sdk/client-sqs"],
  "publishers/kafka": ["kafkajs"],
  "bodies/file": [],
  "bodies/s3": ["@aws-sdk/client-s3"],
  client: [],
  "client/file": [],
  "client/form": [],
  "client/hooks": ["axios", "ky", "got"],
  "client/indexeddb": [],
  "client/local-storage": [],
  logs: ["pino"],
  otel: ["@opentelemetry/api", "@opentelemetry/sdk-trace-base", "@opentelemetry/sdk-metrics"],
  prometheus: ["prom-client"],
  webhooks: ["stripe", "@octokit/webhooks-methods", "standardwebhooks"],
};

/** Subpaths that meet no library of other people. */
const ownParts = [".", "postgres", "memory", "sweeper", "outbox", "inbox", "console", "testing", "package.json"];

interface Manifest {
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly devDependencies?: Readonly<Record<string, string>>;
  readonly exports?: Readonly<Record<string, unknown>>;
}

interface Lock {
  readonly packages: Readonly<Record<string, { readonly version?: string } | undefined>>;
}

const readJson = (path: string): unknown => JSON.parse(readFileSync(join(repositoryRoot, path), "utf8"));

/** The version of a package that a project names itself, as its lock file pins it. */
function lockedVersion(project: string, name: string): readonly string[] {
  const { dependencies = {}, devDependencies = {} } = readJson(join(project, "package.json")) as Manifest;
  if (!(name in { ...dependencies, ...devDependencies })) return [];
  const { packages } = readJson(join(project, "package-lock.json")) as Lock;
  const version = packages[`node_modules/${name}`]?.version;
  if (version === undefined) throw new Error(`${project}/package-lock.json lacks ${name}; run npm install there`);
  return [version];
}

/** Library → the versions tested, newest first. Raises an error for one that no project has. */
function testedVersions(): ReadonlyMap<string, readonly string[]> {
  const found = new Map<string, Set<string>>();
  for (const entry of Object.values(libraries).flat()) {
    const [name = entry, alias = name] = entry.split("=");
    const versions = projects.flatMap((project) => lockedVersion(project, alias));
    if (versions.length === 0) throw new Error(`No project pins ${alias}, which docs/compatibility.md lists`);
    found.set(name, new Set([...(found.get(name) ?? []), ...versions]));
  }
  const newest = new Intl.Collator("en", { numeric: true });
  return new Map([...found].map(([name, versions]) => [name, [...versions].sort((a, b) => newest.compare(b, a))]));
}

/** Every subpath is either tested with libraries or known to need none. */
function checkComplete(): void {
  const exported = Object.keys((readJson("package.json") as Manifest).exports ?? {}).map((name) =>
    name.replace("./", ""),
  );
  const known = new Set([...ownParts, ...Object.keys(libraries)]);
  const missing = exported.filter((name) => !known.has(name));
  const stale = [...known].filter((name) => !exported.includes(name));
  if (missing.length > 0) throw new Error(`scripts/docs-compatibility.ts lacks the subpath ${missing.join(", ")}`);
  if (stale.length > 0) throw new Error(`scripts/docs-compatibility.ts lists no subpath of ours: ${stale.join(", ")}`);
}

/** The table of docs/compatibility.md: each subpath, the libraries behind it and the versions its tests run with. */
export function compatibilityTable(): string {
  checkComplete();
  const versions = testedVersions();
  const rows = Object.entries(libraries).flatMap(([subpath, entries]) => {
    const names = [...new Set(entries.map((entry) => entry.split("=")[0] ?? entry))];
    if (names.length === 0) return [[`\`oncekey/${subpath}\``, "Node itself", ""]];
    return names.map((name) => [`\`oncekey/${subpath}\``, `\`${name}\``, (versions.get(name) ?? []).join(", ")]);
  });
  return markdownTable(["subpath", "library", "versions tested"], rows);
}
