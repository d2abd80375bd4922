import { gzipSync } from "node:zlib";
import type { Page } from "playwright-core";
import { expect, it } from "vitest";
import { send } from "./support/client.ts";
import {
  accessibilityFindings,
  goToPage,
  openConsolePage,
  picture,
  signInAt,
  unresolvedCharge,
  withDesk,
} from "./support/console.ts";

// The console as an operator sees it: the example's own, in a real browser, while requests go on.

const PAGES = ["Overview", "Entries", "Unresolved", "Outbox", "Clients", "Upkeep", "Audit"];
const SCREENS = [
  { name: "desktop-light", options: { viewport: { width: 1280, height: 800 }, colorScheme: "light" } },
  { name: "desktop-dark", options: { viewport: { width: 1280, height: 800 }, colorScheme: "dark" } },
  { name: "phone-light", options: { viewport: { width: 390, height: 844 }, colorScheme: "light", isMobile: true } },
  { name: "phone-dark", options: { viewport: { width: 390, height: 844 }, colorScheme: "dark", isMobile: true } },
] as const;
const FIRST_LOAD_BYTES = 80_000;

/** The figure that a chart shows for one of its lines. */
async function figureOf(page: Page, chart: string, line: string): Promise<number> {
  const label = (await page.getByRole("img", { name: new RegExp(`^${chart}: `) }).getAttribute("aria-label")) ?? "";
  return Number(new RegExp(`${line} ([\\d.]+)`).exec(label)?.[1] ?? 0);
}

withDesk((desk) => {
  it("loads less than 80 kB of its own files at first, and keeps its password to its owner", async () => {
    const page = await send("GET", desk().url, { token: null });
    expect([page.status, page.headers["content-security-policy"]]).toEqual([
      200,
      expect.stringContaining("default-src 'none'; script-src 'self'; style-src 'self'"),
    ]);
    const paths = [...page.text.matchAll(/(?:src|href)="(\.[^"]+)"/g)].map(([, path]) => path ?? "");
    expect(paths.map((path) => path.replace(/.*\./, "")).sort()).toEqual(["css", "js"]);
    const files = await Promise.all(paths.map((path) => send("GET", new URL(path, desk().url).href, { token: null })));
    expect(files.map(({ status }) => status)).toEqual([200, 200]);
    const bytes = [page, ...files].reduce((sum, file) => sum + gzipSync(file.bytes).length, 0);
    console.log(`first load of the console: ${Math.round(bytes / 1_000)} kB gzipped`);
    expect(bytes).toBeLessThan(FIRST_LOAD_BYTES);
    expect(desk().fileMode).toBe("600");
    const spoken = desk().example.stdout() + desk().example.stderr();
    expect(spoken).not.toContain(desk().password);
  });

  it("walks from moving charts over one key's timeline to a resolved charge and its audit line", async () => {
    const key = `walk-4100-${"a".repeat(24)}`;
    const note = "found at the provider, ticket 4711";
    await unresolvedCharge(desk(), key);
    const { page, complaints, hosts } = await openConsolePage(desk(), SCREENS[0].options);
    await page.getByText("Live", { exact: true }).waitFor();
    await expect.poll(() => figureOf(page, "Requests", "completed"), { timeout: 40_000 }).toBeGreaterThan(0);
    await expect.poll(() => figureOf(page, "Replay share", "replays"), { timeout: 40_000 }).toBeGreaterThan(0);

    await page.keyboard.press("/");
    await page.getByLabel("Key", { exact: true }).and(page.locator(":focus")).fill(key);
    await page.keyboard.press("Enter");
    await page.getByRole("link", { name: /^[0-9a-f]{12}$/ }).click();
    await page.getByRole("heading", { name: /^Entry / }).waitFor();
    expect(page.url()).not.toContain("walk-4100");
    const timeline = page.locator(".timeline");
    await timeline.getByText("Outside call authorize").waitFor();
    await timeline.getByText("Needs recovery", { exact: true }).waitFor();
    expect(await page.content()).not.toContain(key);
    // Until then a decision is refused: what was sent may still be carried out.
    const landed = async () => {
      await page.reload();
      await timeline.getByText("Outside call authorize").waitFor();
      return timeline.getByText("it can land no more").count();
    };
    await expect.poll(landed, { timeout: 60_000, interval: 1_000 }).toBe(1);

    await goToPage(page, "Unresolved");
    const row = page.getByRole("row").filter({ hasText: "walk…aaaa" });
    await row.getByRole("button", { name: "Resolve …" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByLabel("Status").fill("201");
    await dialog.getByLabel("Body").fill('{"amount": 41.000000000000000001}');
    await dialog.getByText("every retry is answered").waitFor();
    const settle = dialog.getByRole("button", { name: "Settle as succeeded" });
    expect(await settle.isDisabled()).toBe(true);
    await dialog.getByLabel("Reason").fill(note);
    await settle.click();
    await page.getByText("Every retry is now answered with the stored 201").waitFor();
    await row.waitFor({ state: "detached" });

    await goToPage(page, "Audit");
    const line = page.getByRole("row").filter({ hasText: note });
    expect(await line.textContent()).toContain("resolve: succeeded");
    expect(await line.textContent()).toContain(desk().user);
    expect([complaints, [...hosts]]).toEqual([[], [new URL(desk().url).host]]);
  }, 180_000);

  it("shows a key once it was said why, and notes that in the entry's timeline", async () => {
    const key = `look-4101-${"b".repeat(24)}`;
    await unresolvedCharge(desk(), key);
    const { page } = await openConsolePage(desk());
    await goToPage(page, "Unresolved");
    const row = page.getByRole("row").filter({ hasText: "look…bbbb" });
    await row.getByRole("link", { name: /^[0-9a-f]{12}$/ }).click();
    await page.getByRole("button", { name: "Show the key …" }).click();
    await page.getByLabel("Reason").fill("a client asks for it");
    await page.getByRole("button", { name: "Show it", exact: true }).click();
    expect(await page.locator("[data-revealed]").textContent()).toBe(key);
    await page.keyboard.press("Escape");
    await page.locator(".timeline").getByText("looked at the key").waitFor();
    expect(await page.content()).not.toContain(key);
  }, 180_000);

  it("sends a dead letter again, and lets it go on its way", async () => {
    const { page } = await openConsolePage(desk());
    await goToPage(page, "Outbox");
    const rows = page.getByRole("row").filter({ hasText: "the endpoint is gone (410)" });
    await rows.first().waitFor();
    const before = await rows.count();
    await rows.first().getByRole("button", { name: "Send again …" }).click();
    await page.getByRole("dialog").getByText("gets it twice, under the same id").waitFor();
    await page.getByLabel("Reason").fill("the endpoint is back");
    await page.getByRole("button", { name: "Send it again", exact: true }).click();
    await page.getByText("It is due now").waitFor();
    await expect.poll(() => rows.count(), { timeout: 40_000 }).toBe(before - 1);
  }, 180_000);

  it("is worked by keys alone: pages, search, help, and past the navigation", async () => {
    const { page } = await openConsolePage(desk());
    for (const [letter, name] of [
      ["u", "Unresolved"],
      ["x", "Outbox"],
      ["o", "Overview"],
    ] as const) {
      await page.keyboard.press("g");
      await page.keyboard.press(letter);
      await page.getByRole("heading", { name, level: 1 }).waitFor();
      await page.locator("main:focus").waitFor();
    }
    await page.keyboard.press("?");
    await page.getByRole("dialog", { name: "Keys" }).waitFor();
    await page.keyboard.press("Escape");
    await page.getByRole("dialog").waitFor({ state: "detached" });
    await page.reload();
    await page.getByRole("heading", { name: "Overview", level: 1 }).waitFor();
    await page.keyboard.press("Tab");
    await page.getByRole("button", { name: "Skip to the page" }).and(page.locator(":focus")).press("Enter");
    await page.locator("main:focus").waitFor();
  }, 180_000);

  it.each(SCREENS)(
    "has no serious finding of axe, and nothing wider than the screen: $name",
    async ({ name, options }) => {
      const { page, complaints } = await openConsolePage(desk(), options, false);
      const look = async (what: string) => {
        await page.getByText(/^Loading /).waitFor({ state: "detached" });
        const findings = await accessibilityFindings(page);
        const wider = await page.evaluate("document.documentElement.scrollWidth - innerWidth");
        await picture(page, `${what.toLowerCase()}-${name}`);
        expect({ what, findings, wider: Math.max(0, Number(wider)) }).toEqual({ what, findings: [], wider: 0 });
      };
      await page.getByLabel("User").waitFor();
      await look("sign-in");
      await unresolvedCharge(desk(), `screen-${name}-${"c".repeat(24)}`);
      await signInAt(page, desk());
      for (const title of PAGES) {
        await goToPage(page, title);
        await look(title);
      }
      await goToPage(page, "Unresolved");
      const row = page.getByRole("row").filter({ hasText: "scre…cccc" }).first();
      await row.getByRole("button", { name: "Resolve …" }).click();
      await look("dialog");
      await page.keyboard.press("Escape");
      await row.getByRole("link", { name: /^[0-9a-f]{12}$/ }).click();
      await page.locator(".timeline").waitFor();
      await look("entry");
      expect(complaints).toEqual([]);
    },
    240_000,
  );
});
