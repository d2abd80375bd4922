import { accessSync, constants } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { delimiter, join } from "node:path";
import {
  type Browser,
  type BrowserContext,
  type BrowserContextOptions,
  chromium,
  type LaunchOptions,
} from "playwright-core";
import { afterAll, it } from "vitest";

/** A name that leads to the loopback like `127.0.0.1`, but over plain HTTP is no secure context: no Web Locks there. */
export const INSECURE_HOST = "insecure.test";

const NAMES = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];
const FLAGS = [
  ...["--disable-gpu", "--disable-quic", "--no-first-run", "--disable-component-update", "--disable-sync"],
  ...["--disable-background-networking", `--host-resolver-rules=MAP ${INSECURE_HOST} 127.0.0.1`],
];
const MISSING = "there is no Chromium (apt-get install chromium, or its path in ONCEKEY_TEST_CHROMIUM)";

let launched: Promise<Browser> | undefined;
const opened = new Set<BrowserContext>();

afterAll(async () => {
  for (const context of opened) await context.close();
  await (await launched)?.close();
});

/**
 * Registers tests that need a real, headless Chromium, or one skipped test that says what to install. In CI that is a
 * failure.
 */
export function withChromium(register: () => void): void {
  if (executable() !== null) {
    register();
    return;
  }
  it("in a real Chromium", (context) => {
    if (process.env.CI === "true") throw new Error(`${MISSING}. CI must not skip this.`);
    context.skip(MISSING);
  });
}

/**
 * A fresh profile in the test file's one browser: its pages are tabs that share storages and locks. Closed at the end of
 * the file at the latest. `options`: its screen, its colours.
 */
export async function newProfile(options: BrowserContextOptions = {}): Promise<BrowserContext> {
  launched ??= chromium.launch(launchOptions());
  return keep(await (await launched).newContext(options));
}

/** A browser of its own over a profile on disk: what it keeps is there again when the directory is opened anew. */
export async function openProfile(directory: string): Promise<BrowserContext> {
  return keep(await chromium.launchPersistentContext(directory, launchOptions()));
}

/** Pages and scripts by path, each with its text. A path ending in `.js` is a script, all others are HTML. */
export async function servePages(pages: Readonly<Record<string, string>>): Promise<{ port: number; close(): void }> {
  const server = createServer((request, response) => {
    const path = new URL(request.url ?? "/", "http://localhost").pathname;
    const text = pages[path];
    const type = path.endsWith(".js") ? "text/javascript" : "text/html";
    if (text === undefined) response.writeHead(404).end();
    else response.writeHead(200, { "content-type": `${type}; charset=utf-8` }).end(text);
  });
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  return { port: (server.address() as AddressInfo).port, close: () => void server.close().closeAllConnections() };
}

function keep(context: BrowserContext): BrowserContext {
  opened.add(context);
  context.once("close", () => opened.delete(context));
  return context;
}

function launchOptions(): LaunchOptions {
  const path = executable();
  if (path === null) throw new Error(MISSING);
  return { executablePath: path, args: FLAGS };
}

function executable(): string | null {
  const given = process.env.ONCEKEY_TEST_CHROMIUM;
  if (given !== undefined) return given;
  const folders = (process.env.PATH ?? "").split(delimiter);
  return folders.flatMap((folder) => NAMES.map((name) => join(folder, name))).find(canRun) ?? null;
}

function canRun(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
