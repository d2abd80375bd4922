import pg from "pg";
import type { BrowserContext, Page, Request } from "playwright-core";
import { afterAll, afterEach, beforeAll, expect } from "vitest";
import { withChromium } from "../../support/chromium.ts";
import { list } from "./client.ts";
import { type Example, eventually, makeDataDir, removeDataDir, startExample } from "./example.ts";

/** A shop: the running example, which may be killed and started again at the same address. */
export interface Shop {
  readonly api: string;
  readonly example: Example;
  /** The process of the API is gone, however it ended, and runs again. */
  restart(): Promise<void>;
}

/**
 * Registers tests of the checkout page in a real browser, with a shop of their own. It is open while they run, and holds
 * nothing back that a test before held.
 */
export function withShop(register: (shop: Shop) => void): void {
  withChromium(() => {
    let shop: OpenShop | undefined;
    beforeAll(async () => {
      shop = await openShop();
    });
    afterEach(releaseAll);
    afterAll(() => shop?.close());
    const opened = () => {
      if (shop === undefined) throw new Error("The shop opens before the first test, not while tests are registered.");
      return shop;
    };
    register({
      get api() {
        return opened().api;
      },
      get example() {
        return opened().example;
      },
      restart: () => opened().restart(),
    });
  });
}

interface OpenShop extends Shop {
  close(): Promise<void>;
}

/** A short lease: a charge whose process was killed is taken over soon. */
async function openShop(): Promise<OpenShop> {
  const dir = makeDataDir();
  const env = { ONCEKEY_DATA_DIR: dir, ONCEKEY_LEASE_MS: "1000" };
  let example = await startExample({ env });
  const { api } = example;
  return {
    api,
    get example() {
      return example;
    },
    async restart() {
      await example.ended;
      example = await startExample({ env: { ...env, PORT: new URL(api).port } });
    },
    async close() {
      await example.stop();
      removeDataDir(dir);
    },
  };
}

/** A tab with the checkout page, its script at work. */
export interface Tab {
  readonly page: Page;
  /** Of all tabs of the profile. */
  readonly traffic: Traffic;
  /** Fills the form in; the amount in cents. Each test has an amount of its own, by which its charges are found. */
  fill(amount: number, card?: "tok_visa" | "tok_declined"): Promise<void>;
  pay(): Promise<void>;
  /** Waits until the page shows that state; gives its text. Raises after half a minute. */
  shows(state: string): Promise<string>;
}

/** Requests for charges that a profile's pages have sent. */
export interface Traffic {
  /** How many attempts there were. */
  attempts(): number;
  /** How many different pairs of key and bytes they had. */
  submissions(): number;
  /** How many were under way at the same time, at most. */
  mostAtOnce(): number;
}

const watched = new WeakMap<BrowserContext, Traffic>();

function watch(profile: BrowserContext): Traffic {
  const sent: string[] = [];
  const running = new Set<Request>();
  let most = 0;
  profile.on("request", (request) => {
    if (request.method() !== "POST" || !request.url().endsWith("/v1/charges")) return;
    sent.push(`${request.headers()["idempotency-key"]} ${request.postData()}`);
    running.add(request);
    most = Math.max(most, running.size);
  });
  for (const end of ["requestfinished", "requestfailed"] as const) {
    profile.on(end as "requestfinished", (request) => void running.delete(request));
  }
  return { attempts: () => sent.length, submissions: () => new Set(sent).size, mostAtOnce: () => most };
}

/** Opens the checkout page in a new tab of a profile. */
export async function openTab(profile: BrowserContext, { api }: Shop, query = ""): Promise<Tab> {
  const traffic = watched.get(profile) ?? watch(profile);
  watched.set(profile, traffic);
  const page = await profile.newPage();
  page.on("pageerror", (error) => {
    // Fails the run: a page may not leave an error to nobody.
    void Promise.reject(error);
  });
  await page.goto(`${api}/checkout${query}`);
  return {
    page,
    traffic,
    async fill(amount, card = "tok_visa") {
      await page.fill("#amount", (amount / 100).toFixed(2));
      await page.selectOption("#card", card);
    },
    pay: () => page.click("#checkout button"),
    async shows(state) {
      await page.locator(`#status[data-state="${state}"]`).waitFor({ timeout: 30_000, state: "attached" });
      return (await page.locator("#status").textContent()) ?? "";
    },
  };
}

/** How often that amount was charged, authorized and captured, and with how many keys. */
export async function timesPaid({ api, example }: Shop, amount: number) {
  const of = (all: readonly { amount_minor: number }[]) => all.filter((one) => one.amount_minor === amount);
  const charges = of(await list(`${api}/v1/charges`));
  const authorizations = of(await list(`${example.psp}/authorizations`));
  const captures = of(await list(`${example.psp}/captures`));
  return { charges: charges.length, authorizations: authorizations.length, captures: captures.length };
}

/** Paid exactly once, everywhere. */
const ONCE = { charges: 1, authorizations: 1, captures: 1 };
/** Nothing reached the business. */
export const NEVER = { charges: 0, authorizations: 0, captures: 0 };

const holds = new Set<Hold>();

/** Holds every charge back, before it is written. */
export interface Hold {
  /** A charge has reached the server's business code, and waits there. */
  reached(): Promise<void>;
  release(): Promise<void>;
}

/** Keeps every charge from being written: a request that has begun is under way for as long as the test wants. */
export async function holdCharges({ example }: Shop): Promise<Hold> {
  // Two connections: within one transaction the activity is read once only.
  const [holder, watcher] = [await connect(example.database), await connect(example.database)];
  await holder.query("begin");
  await holder.query("lock table charges in access exclusive mode");
  const waiting = "select from pg_stat_activity where wait_event_type = 'Lock' and query ilike '%insert into charges%'";
  const hold: Hold = {
    reached: () => eventually("a charge waits", 20_000, async () => (await watcher.query(waiting)).rowCount === 1),
    async release() {
      if (holds.delete(hold)) await Promise.all([holder.end(), watcher.end()]);
    },
  };
  holds.add(hold);
  return hold;
}

/** After each test: a test that failed in between holds nothing back from the next one. */
async function releaseAll(): Promise<void> {
  for (const hold of holds) await hold.release();
}

async function connect(connectionString: string): Promise<pg.Client> {
  const client = new pg.Client({ connectionString });
  client.on("error", () => undefined);
  await client.connect();
  return client;
}

/** All that the page and its profile hold that a script, or whoever reads the disk, could see. */
export async function readable(page: Page): Promise<string> {
  const stored = await page.evaluate(async () => {
    // biome-ignore lint/suspicious/noExplicitAny: the browser's objects; this project is compiled without their types.
    const browser = globalThis as any;
    const dumps: unknown[] = [{ ...browser.localStorage }, { ...browser.sessionStorage }, browser.document.cookie];
    for (const { name } of await browser.indexedDB.databases()) {
      // biome-ignore lint/suspicious/noExplicitAny: as above.
      const wait = (request: any) =>
        new Promise<unknown>((done, fail) => {
          request.onsuccess = () => done(request.result);
          request.onerror = () => fail(request.error);
        });
      // biome-ignore lint/suspicious/noExplicitAny: as above.
      const database = (await wait(browser.indexedDB.open(name))) as any;
      for (const store of database.objectStoreNames) {
        dumps.push(await wait(database.transaction(store).objectStore(store).getAll()));
      }
      database.close();
    }
    return JSON.stringify(dumps);
  });
  return `${stored}\n${await page.content()}\n${page.url()}`;
}

/** That amount was charged once, and every attempt of the profile had one key and the same bytes. */
export async function expectPaidOnce(shop: Shop, amount: number, { traffic }: Tab): Promise<void> {
  expect(await timesPaid(shop, amount)).toEqual(ONCE);
  expect(traffic.submissions()).toBe(1);
}
