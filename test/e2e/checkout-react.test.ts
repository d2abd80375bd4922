import { join } from "node:path";
import type { Page } from "playwright-core";
import { beforeAll, expect, it } from "vitest";
import { bundleForPage } from "../support/browser-bundle.ts";
import { newProfile } from "../support/chromium.ts";
import { expectPaidOnce, holdCharges, openTab, withShop } from "./support/checkout.ts";

// The React hook of the examples, in strict mode, against the running example.

const PAGE = '<!doctype html><title>Pay</title><div id="root"></div><script src="/react.js"></script>';

withShop((shop) => {
  let script: string;
  beforeAll(async () => {
    script = await bundleForPage(join(import.meta.dirname, "support", "react-page.ts"));
  });

  /** A tab with the button for an order of that amount, on the shop's own origin and in its session. */
  async function openButton(amount: number) {
    const profile = await newProfile();
    await profile.route("**/react.js", (route) => route.fulfill({ contentType: "text/javascript", body: script }));
    await profile.route("**/react?*", (route) => route.fulfill({ contentType: "text/html", body: PAGE }));
    const tab = await openTab(profile, shop);
    const url = `${shop.api}/react?order=${amount}&amount=${amount}`;
    await tab.page.goto(url);
    return { ...tab, url, pay: () => tab.page.click("text=Pay"), paid: () => paid(tab.page) };
  }

  async function paid(page: Page): Promise<string | null> {
    const status = page.getByRole("status").getByText("Paid: ch_");
    await status.waitFor();
    return status.textContent();
  }

  it("sends nothing when it appears, and once when the button is pressed twice", async () => {
    const tab = await openButton(6001);
    await tab.page.locator("button:enabled").waitFor();
    expect(tab.traffic.attempts()).toBe(0);
    await tab.page.dblclick("text=Pay");
    await tab.paid();
    await expectPaidOnce(shop, 6001, tab);
    expect(tab.traffic.mostAtOnce()).toBe(1);
  });

  it("strict mode's two effects resume a submission once after a reload", async () => {
    const tab = await openButton(6002);
    const hold = await holdCharges(shop);
    await tab.pay();
    await hold.reached();
    await tab.page.reload();
    await expect.poll(() => tab.traffic.attempts(), { timeout: 20_000 }).toBe(2);
    await hold.release();
    await tab.paid();
    await expectPaidOnce(shop, 6002, tab);
    // The page that was left and the new one: a sending for each effect would be two at once.
    expect(tab.traffic.mostAtOnce()).toBe(1);
  });

  it("unmounting keeps the submission: the next component shows its result", async () => {
    const tab = await openButton(6003);
    const hold = await holdCharges(shop);
    await tab.pay();
    await hold.reached();
    await tab.page.evaluate("show(false)");
    await tab.page.locator("button").waitFor({ state: "detached" });
    await hold.release();
    await tab.page.evaluate("show(true)");
    const receipt = await tab.paid();
    await expectPaidOnce(shop, 6003, tab);
    const attempts = tab.traffic.attempts();
    await tab.page.goto(tab.url);
    expect(await tab.paid()).toBe(receipt);
    expect(tab.traffic.attempts()).toBe(attempts);
  });
});
