import { readFile } from "node:fs/promises";
import { extname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { type Answered, emptyAnswer, SAFE_HEADERS, textAnswer } from "./exchange.ts";

const TYPES: Readonly<Record<string, string>> = {
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".css": "text/css; charset=utf-8",
  ".svg": "image/svg+xml",
  ".png": "image/png",
  ".ico": "image/x-icon",
  ".json": "application/json; charset=utf-8",
  ".txt": "text/plain; charset=utf-8",
};

/** Where the page's files lie: beside this module in the package; in a checkout where the build of `console/` puts them. */
export function assetsFolder(): string {
  const isSource = import.meta.url.endsWith(".ts");
  return fileURLToPath(new URL(isSource ? "../../console/dist/" : "./static/", import.meta.url));
}

const PLAIN_PATH = /^(?:\/[A-Za-z0-9_-][A-Za-z0-9._-]*)+$/;

/** The page and its files. `path` begins with a slash; what is no plain path of files is not looked for. */
export async function assetAnswer(folder: string, path: string): Promise<Answered> {
  const file = path === "/" ? "/index.html" : path;
  const type = TYPES[extname(file)];
  if (!PLAIN_PATH.test(file) || type === undefined) return textAnswer(404, "There is no such page.\n");
  const body = await readFile(join(folder, file)).catch(() => null);
  if (body !== null) {
    // Files below assets/ carry a digest of their content in their names.
    const caching = file.startsWith("/assets/") ? "private, max-age=31536000, immutable" : "no-store";
    return { status: 200, headers: [...SAFE_HEADERS, ["cache-control", caching], ["content-type", type]], body };
  }
  if (file === "/index.html") {
    return textAnswer(
      503,
      "The console's page is not built. Its data is there (api/overview).\nIn a checkout of Oncekey run: npm run build:console\n",
    );
  }
  return emptyAnswer(404);
}
