import { readFileSync } from "node:fs";

let known: string | null = null;

/** The version of this package; `unknown` in a bundle, which has left the manifest behind. */
export function packageVersion(): string {
  known ??= readVersion();
  return known;
}

function readVersion(): string {
  try {
    const manifest = readFileSync(new URL("../../package.json", import.meta.url), "utf8");
    return (JSON.parse(manifest) as { version: string }).version;
  } catch {
    return "unknown";
  }
}
