import { readdirSync, readFileSync } from "node:fs";
import { dirname, join, relative, resolve } from "node:path";
import { build } from "esbuild";

/** What of vite's plugins is used here. */
interface Plugin {
  readonly name: string;
  readonly enforce: "pre";
  resolveId(source: string, importer: string | undefined): string | null;
}

/** Where the bundle lies, in the copy. */
const FOLDER = "stryker-bundled";

/** What vitest must load as it is, without its own transforms. */
export const BUNDLED = /\/stryker-bundled\//;

/**
 * Bundles the sources that tests import, with the mutants in them, and sends the tests' imports there: each mutant's run
 * loads them anew, and some hundred modules through vitest's loader would be most of its time. A module that two of them
 * share stays one module.
 */
export async function bundledSources(root: string): Promise<Plugin> {
  const exported = exportedSources(root);
  const imported = importedSources(root, exported);
  const built = new Map(imported.map((source) => [source, join(root, FOLDER, `${relative(root, source)}.mjs`)]));
  await build({
    entryPoints: imported.map((source) => ({ in: source, out: `${relative(root, source)}` })),
    outdir: join(root, FOLDER),
    outExtension: { ".js": ".mjs" },
    bundle: true,
    splitting: true,
    format: "esm",
    platform: "node",
    target: "node20",
    packages: "external",
    logLevel: "error",
  });
  return {
    name: "bundled-sources",
    enforce: "pre",
    resolveId(source, importer) {
      const wanted = sourceOf(source, importer, exported);
      return wanted === null ? null : (built.get(wanted) ?? null);
    },
  };
}

/** The sources of the package, by the names that users import. */
function exportedSources(root: string): ReadonlyMap<string, string> {
  const { exports } = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as {
    exports: Record<string, { "oncekey-source"?: string }>;
  };
  const sources = Object.entries(exports).flatMap(([name, { "oncekey-source": source }]) =>
    source === undefined ? [] : [[join("oncekey", name), resolve(root, source)] as const],
  );
  return new Map(sources);
}

const IMPORT = /(?:from|import\()\s*"([^"]+)"/g;

function importedSources(root: string, exported: ReadonlyMap<string, string>): string[] {
  const found = new Set<string>();
  for (const folder of ["test/unit", "test/support"]) {
    for (const name of readdirSync(join(root, folder), { recursive: true, encoding: "utf8" })) {
      const file = join(root, folder, name);
      if (!name.endsWith(".ts")) continue;
      for (const [, source = ""] of readFileSync(file, "utf8").matchAll(IMPORT)) {
        const wanted = sourceOf(source, file, exported);
        if (wanted?.startsWith(join(root, "src/"))) found.add(wanted);
      }
    }
  }
  return [...found].sort();
}

function sourceOf(source: string, importer: string | undefined, exported: ReadonlyMap<string, string>): string | null {
  if (exported.has(source)) return exported.get(source) ?? null;
  return source.startsWith(".") && importer !== undefined ? resolve(dirname(importer), source) : null;
}
