import type { BrowserContext } from "playwright-core";
import { expect, it } from "vitest";
import { newProfile } from "../support/chromium.ts";
import { expectPaidOnce, holdCharges, NEVER, openTab, type Shop, timesPaid, withShop } from "./support/checkout.ts";

// The checkout page when the network, the server or the browser's storage fails.

withShop((shop) => {
  it("offline, the payment is kept; online again, it is made once", async () => {
    const profile = await newProfile();
    const tab = await openTab(profile, shop);
    await profile.setOffline(true);
    await tab.fill(5001);
    await tab.pay();
    expect(await tab.shows("offline")).toContain("kept");
    expect(await timesPaid(shop, 5001)).toEqual(NEVER);
    await profile.setOffline(false);
    await tab.shows("paid");
    await expectPaidOnce(shop, 5001, tab);
  });

  it("offline while the server works, the payment is made once", async () => {
    const profile = await newProfile();
    const tab = await openTab(profile, shop);
    const hold = await holdCharges(shop);
    await tab.fill(5002);
    await tab.pay();
    await hold.reached();
    await profile.setOffline(true);
    await tab.page.reload({ waitUntil: "commit" }).catch(() => undefined);
    await hold.release();
    await profile.setOffline(false);
    await tab.page.goto(`${shop.api}/checkout`);
    await tab.shows("paid");
    await expectPaidOnce(shop, 5002, tab);
  });

  it("a server that is killed after the provider's answer and started again makes the payment once", async () => {
    const profile = await newProfile();
    const tab = await openTab(profile, shop);
    await profile.setExtraHTTPHeaders({ "x-lab-crash": "record_call:authorize:before" });
    await tab.fill(5003);
    await tab.pay();
    await shop.example.ended;
    await profile.setExtraHTTPHeaders({});
    await tab.shows("no_answer");
    await shop.restart();
    await tab.shows("paid");
    await expectPaidOnce(shop, 5003, tab);
    expect(tab.traffic.attempts()).toBeGreaterThan(1);
  });

  it("killed while the page is closed, the payment goes on in the next page", async () => {
    const profile = await newProfile();
    const tab = await openTab(profile, shop);
    await profile.setExtraHTTPHeaders({ "x-lab-crash": "record_call:capture:before" });
    await tab.fill(5004);
    await tab.pay();
    await shop.example.ended;
    await tab.page.close();
    await profile.setExtraHTTPHeaders({});
    await shop.restart();
    const next = await openTab(profile, shop);
    await next.shows("paid");
    await expectPaidOnce(shop, 5004, tab);
    expect(next.traffic.attempts()).toBeGreaterThan(1);
  });

  it("with localStorage full nothing is sent, and the page says so; with space again it is paid once", async () => {
    const tab = await openTab(await newProfile(), shop, "?storage=localstorage");
    await tab.page.evaluate(FILL_LOCAL_STORAGE);
    await tab.fill(5005);
    await tab.pay();
    expect(await tab.shows("not_kept")).toContain("nothing was sent");
    expect(tab.traffic.attempts()).toBe(0);
    expect(await timesPaid(shop, 5005)).toEqual(NEVER);
    await tab.page.evaluate("localStorage.removeItem('filling')");
    await tab.pay();
    await tab.shows("paid");
    await expectPaidOnce(shop, 5005, tab);
  });

  it("with IndexedDB full nothing is sent, and the page says so; with space again it is paid once", async () => {
    const profile = await newProfile();
    const storage = await storageOf(profile, shop);
    await storage.fill();
    const tab = await openTab(profile, shop, "?storage=indexeddb");
    await tab.fill(5006);
    await tab.pay();
    expect(await tab.shows("not_kept")).toContain("nothing was sent");
    expect(tab.traffic.attempts()).toBe(0);
    expect(await timesPaid(shop, 5006)).toEqual(NEVER);
    await storage.makeRoom();
    await tab.pay();
    await tab.shows("paid");
    await expectPaidOnce(shop, 5006, tab);
  });

  it("without any storage the page says so, and nothing is sent", async () => {
    const profile = await newProfile();
    await profile.addInitScript("delete IDBFactory.prototype.open");
    const tab = await openTab(profile, shop, "?storage=indexeddb");
    await tab.shows("broken");
    await tab.fill(5011);
    await tab.pay();
    expect(await tab.shows("not_kept")).toContain("nothing was sent");
    expect(tab.traffic.attempts()).toBe(0);
  });

  /** A payment that waits in the server, and the user's hand on where the page keeps it. */
  async function payHeld(kind: string, amount: number) {
    const profile = await newProfile();
    const tab = await openTab(profile, shop, `?storage=${kind}`);
    const storage = await storageOf(profile, shop);
    const hold = await holdCharges(shop);
    await tab.fill(amount);
    await tab.pay();
    await hold.reached();
    return { tab, storage, hold };
  }

  it.each([
    ["indexeddb", 5007],
    ["localstorage", 5008],
  ])("%s cleared under a page that sends changes nothing: one payment", async (kind, amount) => {
    const { tab, storage, hold } = await payHeld(kind, amount);
    await storage.clear();
    await hold.release();
    await tab.shows("paid");
    await expectPaidOnce(shop, amount, tab);
  });

  it.each([
    ["indexeddb", 5009],
    ["localstorage", 5010],
  ])(
    "%s cleared and the page loaded anew: a warning first, and a new submission only when the user pays again",
    async (kind, amount) => {
      const { tab, storage, hold } = await payHeld(kind, amount);
      await tab.page.goto("about:blank");
      await storage.clear();
      await hold.release();
      await tab.page.goBack();
      await tab.page.getByRole("alert").getByText("look at your account before you pay again").waitFor();
      expect(tab.traffic.attempts()).toBe(1);
      await tab.fill(amount);
      await tab.pay();
      await tab.shows("paid");
      expect(tab.traffic.submissions()).toBe(2);
    },
  );
});

/** Fills localStorage to its last character. */
const FILL_LOCAL_STORAGE = `(() => {
  let text = "";
  for (let step = 1 << 22; step >= 1; step >>= 1) {
    for (;;) {
      try {
        localStorage.setItem("filling", text + "x".repeat(step));
        text += "x".repeat(step);
      } catch {
        break;
      }
    }
  }
})()`;

/** The user's and the disk's hand on the storages of the shop's origin. */
async function storageOf(profile: BrowserContext, { api: origin }: Shop) {
  const devtools = await profile.newCDPSession(await profile.newPage());
  return {
    /** Leaves one byte. To be called before the origin's first page: the browser remembers for a while that there is room. */
    fill: () => devtools.send("Storage.overrideQuotaForOrigin", { origin, quotaSize: 1 }),
    makeRoom: () => devtools.send("Storage.overrideQuotaForOrigin", { origin }),
    clear: () => devtools.send("Storage.clearDataForOrigin", { origin, storageTypes: "indexeddb,local_storage" }),
  };
}
