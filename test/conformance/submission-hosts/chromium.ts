import { fileURLToPath } from "node:url";
import { submissionStorageSuite } from "oncekey/testing";
import type { Page } from "playwright-core";
import { afterAll, beforeAll, describe, it } from "vitest";
import { bundleForPage } from "../../support/browser-bundle.ts";
import { newProfile, servePages } from "../../support/chromium.ts";

/** The storages of a browser. */
export type PageStorage = "indexedDB" | "localStorage";

const fileHere = (name: string): string => fileURLToPath(new URL(`./${name}`, import.meta.url));

/** The pages of the tests on a free port: `/` is the suite's. */
export async function serveStoragePages(): Promise<Awaited<ReturnType<typeof servePages>>> {
  const alias = { "node:assert/strict": fileHere("page-assert.ts") };
  const [suite, tab] = await Promise.all([
    bundleForPage(fileHere("page.ts"), alias),
    bundleForPage(fileHere("tab.ts"), alias),
  ]);
  const shell = (script: string) => `<!doctype html><title>storages</title><script src="${script}"></script>`;
  return servePages({ "/": shell("/suite.js"), "/suite.js": suite, "/tab": shell("/tab.js"), "/tab.js": tab });
}

/** Registers the suite for a storage of a real page on that host; each case runs in the page, when its test does. */
export function suiteInPage(storage: PageStorage, name: string, host: string): void {
  let page: Page;
  describe(`in Chromium, ${name}`, () => {
    beforeAll(async () => {
      const server = await serveStoragePages();
      afterAll(() => server.close());
      page = await (await newProfile()).newPage();
      await openPage(page, `http://${host}:${server.port}`, storage);
    });
    let cases = 0;
    const register = (title: string, _run: () => Promise<void>, timeoutMs?: number) => {
      const index = cases++;
      it(title, () => runInPage(page, index), timeoutMs);
    };
    const unused = async () => {
      throw new Error("The harness is the page's.");
    };
    submissionStorageSuite({ describe, it: register }, name, unused);
  });
}

/** Limited from the beginning: for half a minute the browser goes by what it found to be free. */
const QUOTA_BYTES = 24 * 1_048_576;

async function openPage(page: Page, origin: string, storage: PageStorage): Promise<void> {
  const devtools = await page.context().newCDPSession(page);
  const limitQuota = async (limited: boolean) => {
    await devtools.send("Storage.overrideQuotaForOrigin", { origin, ...(limited ? { quotaSize: QUOTA_BYTES } : {}) });
  };
  await limitQuota(true);
  await page.exposeFunction("limitQuota", limitQuota);
  await page.goto(`${origin}/?${storage}`);
}

async function runInPage(page: Page, index: number): Promise<void> {
  const failure: unknown = await page.evaluate(`runCase(${index})`);
  if (failure !== null) throw new Error(`In the page: ${failure}`);
}
