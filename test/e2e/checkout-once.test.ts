import { describe, expect, it } from "vitest";
import { newProfile } from "../support/chromium.ts";
import { expectPaidOnce, holdCharges, NEVER, openTab, timesPaid, withShop } from "./support/checkout.ts";

// The checkout page of the running example in a real browser: what the user does twice is done once.

withShop((shop) => {
  describe.each(["indexeddb", "localstorage"])("with %s", (storage) => {
    const base = storage === "indexeddb" ? 1000 : 2000;

    it("a double click pays once", async () => {
      const tab = await openTab(await newProfile(), shop, `?storage=${storage}`);
      await tab.fill(base + 1);
      await tab.page.dblclick("#checkout button");
      expect(await tab.shows("paid")).toMatch(`Paid ${base / 100}.01 EUR`);
      await expectPaidOnce(shop, base + 1, tab);
      expect(tab.traffic.mostAtOnce()).toBe(1);
    });

    it("a reload during the request sends the same key and bytes, and shows the result", async () => {
      const tab = await openTab(await newProfile(), shop, `?storage=${storage}`);
      const hold = await holdCharges(shop);
      await tab.fill(base + 2);
      await tab.pay();
      await hold.reached();
      await tab.page.reload();
      await hold.release();
      await tab.shows("paid");
      await expectPaidOnce(shop, base + 2, tab);
      expect(tab.traffic.attempts()).toBeGreaterThan(1);
    });

    it("two tabs with one order never send at the same time, and both learn the result", async () => {
      const profile = await newProfile();
      const query = `?storage=${storage}&order=${base}`;
      const [first, second] = [await openTab(profile, shop, query), await openTab(profile, shop, query)];
      const hold = await holdCharges(shop);
      for (const tab of [first, second]) await tab.fill(base + 3);
      await first.pay();
      await hold.reached();
      await second.pay();
      await second.shows("waiting");
      await hold.release();
      const texts = [await first.shows("paid"), await second.shows("paid")];
      expect(new Set(texts).size).toBe(1);
      await expectPaidOnce(shop, base + 3, first);
      expect(first.traffic.mostAtOnce()).toBe(1);
    });

    it("a tab that was closed during the request is succeeded by a new one", async () => {
      const profile = await newProfile();
      const closed = await openTab(profile, shop, `?storage=${storage}`);
      const hold = await holdCharges(shop);
      await closed.fill(base + 4);
      await closed.pay();
      await hold.reached();
      await closed.page.close();
      const next = await openTab(profile, shop, `?storage=${storage}`);
      await hold.release();
      await next.shows("paid");
      await expectPaidOnce(shop, base + 4, next);
      expect(next.traffic.attempts()).toBeGreaterThan(1);
    });

    it("the back button after a payment shows it, and another click does not pay again", async () => {
      const tab = await openTab(await newProfile(), shop, `?storage=${storage}`);
      await tab.fill(base + 5);
      await tab.pay();
      const receipt = await tab.shows("paid");
      const attempts = tab.traffic.attempts();
      await tab.page.goto(`${shop.api}/openapi.json`);
      await tab.page.goBack();
      expect(await tab.shows("paid")).toBe(receipt);
      await tab.fill(base + 6);
      await tab.pay();
      // Not waitForFunction: while it waits it evaluates text in the page, which the page's policy forbids.
      await tab.page.locator("form[aria-busy=false]").waitFor();
      expect(await tab.shows("paid")).toBe(receipt);
      await expectPaidOnce(shop, base + 5, tab);
      expect(await timesPaid(shop, base + 6)).toEqual(NEVER);
      expect(tab.traffic.attempts()).toBe(attempts);
    });
  });

  it("two quick presses of Enter pay once", async () => {
    const tab = await openTab(await newProfile(), shop);
    await tab.fill(3001);
    await tab.page.focus("#amount");
    await Promise.all([tab.page.keyboard.press("Enter"), tab.page.keyboard.press("Enter")]);
    await tab.shows("paid");
    await expectPaidOnce(shop, 3001, tab);
    expect(tab.traffic.mostAtOnce()).toBe(1);
  });

  it("a page that comes back from the back-forward cache shows what became of its payment", async () => {
    const profile = await newProfile();
    const first = await openTab(profile, shop, "?order=3002");
    const second = await openTab(profile, shop, "?order=3002");
    await second.fill(3002);
    await second.pay();
    const receipt = await second.shows("paid");
    const attempts = second.traffic.attempts();
    expect(await first.page.locator("#status").textContent()).toBe("");
    await first.page.evaluate("dispatchEvent(new PageTransitionEvent('pageshow', { persisted: true }))");
    expect(await first.shows("paid")).toBe(receipt);
    expect(first.traffic.attempts()).toBe(attempts);
  });

  it("an order that is paid is not paid with other contents by another tab", async () => {
    const profile = await newProfile();
    const query = "?order=3003";
    const [first, second] = [await openTab(profile, shop, query), await openTab(profile, shop, query)];
    await first.fill(3003);
    await first.pay();
    const receipt = await first.shows("paid");
    await second.fill(3004);
    await second.pay();
    await second.shows("in_the_way");
    await second.page.click("#again");
    expect(await second.shows("paid")).toBe(receipt);
    await expectPaidOnce(shop, 3003, first);
    expect((await timesPaid(shop, 3004)).charges).toBe(0);
  });

  it("what the user begins after a payment is another payment", async () => {
    const tab = await openTab(await newProfile(), shop);
    for (const round of [1, 2]) {
      await tab.fill(3005);
      await tab.pay();
      await tab.shows("paid");
      expect((await timesPaid(shop, 3005)).charges).toBe(round);
      await tab.page.click("#anew");
    }
    expect(tab.traffic.submissions()).toBe(2);
  });

  it("after a declined card, trying again is another submission, with the same contents or corrected", async () => {
    const tab = await openTab(await newProfile(), shop);
    await tab.fill(3006, "tok_declined");
    await tab.pay();
    await tab.shows("declined");
    expect(await timesPaid(shop, 3006)).toMatchObject({ charges: 1, captures: 0 });
    await tab.page.reload();
    await tab.shows("declined");
    await tab.fill(3006, "tok_declined");
    await tab.pay();
    await expect.poll(() => timesPaid(shop, 3006), { timeout: 20_000 }).toMatchObject({ charges: 2, captures: 0 });
    await tab.shows("declined");
    await tab.fill(3006);
    await tab.pay();
    await tab.shows("paid");
    expect(await timesPaid(shop, 3006)).toEqual({ charges: 3, authorizations: 3, captures: 1 });
    expect(tab.traffic.submissions()).toBe(3);
  });
});
