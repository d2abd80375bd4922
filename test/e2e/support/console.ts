import { randomUUID } from "node:crypto";
import { mkdirSync, readFileSync, statSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import axe from "axe-core";
import { createConsoleIndexes } from "oncekey/console";
import { fromPg } from "oncekey/drivers/pg";
import pg from "pg";
import type { BrowserContextOptions, Page } from "playwright-core";
import { afterAll, beforeAll } from "vitest";
import { newProfile, withChromium } from "../../support/chromium.ts";
import { behave, post } from "./client.ts";
import { type Example, eventually, makeDataDir, removeDataDir, startExample } from "./example.ts";

/** The running example with its console, as `npm start` mounts it. */
export interface Desk {
  readonly url: string;
  readonly example: Example;
  readonly user: string;
  readonly password: string;
  /** The permissions of the file that both stand in, in octal. */
  readonly fileMode: string;
}

/** Registers tests of the console's page in a real browser, with an example of their own that stays busy. */
export function withDesk(register: (desk: () => Desk) => void): void {
  withChromium(() => {
    let desk: Desk | undefined;
    let dir = "";
    const ending = new AbortController();
    let storm: Promise<void> | undefined;
    let receiver: Server | undefined;
    beforeAll(async () => {
      dir = makeDataDir();
      // A charge whose answer is lost cannot be settled by asking: a person has to.
      receiver = await goneAtFirst();
      const env = {
        ONCEKEY_DATA_DIR: dir,
        ONCEKEY_LEASE_MS: "1000",
        ONCEKEY_PSP_RECOVER: "at_most_once",
        ONCEKEY_WEBHOOK_URL: `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/`,
      };
      const example = await startExample({ env });
      desk = await deskOf(example);
      await makeIndexes(example.database);
      storm = keepBusy(example, ending.signal);
    });
    afterAll(async () => {
      ending.abort();
      await storm;
      await desk?.example.stop();
      receiver?.close().closeAllConnections();
      removeDataDir(dir);
    });
    register(() => {
      if (desk === undefined) throw new Error("The desk opens before the first test, not while tests are registered.");
      return desk;
    });
  });
}

async function deskOf(example: Example): Promise<Desk> {
  const named = () => /password: (\S+)\)/.exec(example.stderr())?.[1] ?? "";
  // Said after the line that the example is ready.
  await eventually("the password's file is named", 20_000, () => named() !== "");
  const file = named();
  const credentials = JSON.parse(readFileSync(file, "utf8")) as Pick<Desk, "user" | "password">;
  const fileMode = (statSync(file).mode & 0o777).toString(8);
  return { url: `${example.api}/console/`, example, fileMode, ...credentials };
}

async function makeIndexes(connectionString: string): Promise<void> {
  const pool = new pg.Pool({ connectionString, max: 1 });
  await createConsoleIndexes(fromPg(pool));
  await pool.end();
}

/** A receiver of webhooks that is gone for the first three: they become dead letters. */
async function goneAtFirst(): Promise<Server> {
  let received = 0;
  const server = createServer((request, response) => {
    request.resume();
    received += 1;
    response.writeHead(received <= 3 ? 410 : 204).end();
  });
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  return server;
}

const INVOICE = { customer_id: "cus_1", amount_minor: 1999, currency: "EUR" };

/** Invoices, each asked for three times and once with another payload, one after the other. */
async function keepBusy({ api }: Example, signal: AbortSignal): Promise<void> {
  const url = `${api}/v1/invoices`;
  while (!signal.aborted) {
    // A storm for the charts, not for the machine: the browser needs it as well.
    await sleep(100);
    const key = randomUUID();
    await Promise.all([1, 2, 3].map(() => post(url, key, INVOICE)));
    await post(url, key, { ...INVOICE, amount_minor: 2 });
  }
}

/** A charge whose answer was lost on its way: it needs a person. */
export async function unresolvedCharge({ example }: Desk, key: string): Promise<void> {
  const charge = { amount_minor: 4100, currency: "EUR", source: "tok_visa" };
  await eventually("the charge is unresolved", 60_000, async () => {
    await behave(example.psp, { drop_next: 1 });
    const { status } = await post(`${example.api}/v1/charges`, key, charge);
    if (status === 409) return true;
    // A database that is busy at this moment says so before anything is sent; the key is as it was.
    if (status === 503) return false;
    throw new Error(`The charge should be unresolved, but was answered ${status}.`);
  });
}

/** What a page complained of, and where it sent requests. */
export interface Watched {
  readonly page: Page;
  readonly complaints: string[];
  readonly hosts: Set<string>;
}

/** The console in a profile of its own, at its sign-in or, with `signIn`, past it. */
export async function openConsolePage(
  desk: Desk,
  options: BrowserContextOptions = {},
  signIn = true,
): Promise<Watched> {
  const profile = await newProfile(options);
  const page = await profile.newPage();
  const complaints: string[] = [];
  const hosts = new Set<string>();
  page.on("pageerror", (error) => complaints.push(String(error)));
  page.on("console", (message) => {
    // The first question whether somebody is signed in is answered 401, a busy database 503: the browser itself notes that.
    const isAnswer = /^Failed to load resource: the server responded with a status of (401|503)/.test(message.text());
    if (["error", "warning"].includes(message.type()) && !isAnswer) complaints.push(message.text());
  });
  page.on("request", (request) => hosts.add(new URL(request.url()).host));
  await page.goto(desk.url);
  if (signIn) await signInAt(page, desk);
  return { page, complaints, hosts };
}

/** Signs in by hand. */
export async function signInAt(page: Page, { user, password }: Desk): Promise<void> {
  await page.getByLabel("User").fill(user);
  await page.getByLabel("Password").fill(password);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByRole("heading", { name: "Overview", level: 1 }).waitFor();
}

/** Goes to a page by its name in the navigation. */
export async function goToPage(page: Page, name: string): Promise<void> {
  const menu = page.getByRole("button", { name: "Menu" });
  if (await menu.isVisible()) await menu.click();
  await page.getByRole("navigation", { name: "Pages" }).getByRole("link", { name }).click();
  await page.getByRole("heading", { name, level: 1 }).waitFor();
}

/** What axe finds wrong with the page as it stands: rule, weight and place of each. */
export async function accessibilityFindings(page: Page): Promise<string[]> {
  // Through the debugging protocol, which no policy of the page binds.
  await page.evaluate(axe.source);
  return page.evaluate(async () => {
    // biome-ignore lint/suspicious/noExplicitAny: a global of the page's, where this project's types do not reach.
    const { violations } = await (globalThis as any).axe.run();
    // biome-ignore lint/suspicious/noExplicitAny: as above.
    return violations.map(({ id, impact, nodes }: any) => `${impact} ${id}: ${nodes[0].html}`);
  });
}

/** Keeps a picture to look at, where ONCEKEY_TEST_SCREENSHOTS names a folder for them. */
export async function picture(page: Page, name: string): Promise<void> {
  const folder = process.env.ONCEKEY_TEST_SCREENSHOTS;
  if (folder === undefined) return;
  mkdirSync(folder, { recursive: true });
  await page.screenshot({ path: join(folder, `${name}.png`), fullPage: true });
}
