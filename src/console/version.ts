import { readFileSync } from "node:fs";

let known: string | null = null;

/** The version of this package. */
export function packageVersion(): string {
  if (known === null) {
    const manifest = readFileSync(new URL("../../package.json", import.meta.url), "utf8");
    known = (JSON.parse(manifest) as { version: string }).version;
  }
  return known;
}
