import { expect, it } from "vitest";
import { newProfile } from "../support/chromium.ts";
import { openTab, readable, withShop } from "./support/checkout.ts";
import { list, send } from "./support/client.ts";
import { makeDataDir, removeDataDir, startExample } from "./support/example.ts";

// The checkout page: what is served, and that nothing secret is in it.

const CHARGE = { amount_minor: 4001, currency: "EUR", source: "tok_visa" };
const anonymous = { token: null };

it("npm start serves the page, its style and its script, bundled from the sources, and the console's page", async () => {
  const dir = makeDataDir();
  const example = await startExample({ env: { ONCEKEY_DATA_DIR: dir }, command: ["npm", "start"] });
  try {
    const page = await send("GET", `${example.api}/checkout`, anonymous);
    expect([page.status, page.headers["content-type"]]).toEqual([200, expect.stringMatching(/^text\/html/)]);
    const files = [...page.text.matchAll(/(?:src|href)="([^"]+)"/g)].map(([, path]) => path);
    expect(files).toEqual(["/checkout/checkout.css", "/checkout/checkout.js"]);
    for (const path of files) {
      const file = await send("GET", `${example.api}${path}`, anonymous);
      expect([file.status, file.bytes.length > 100, file.headers["content-type"]]).toEqual([
        200,
        true,
        expect.stringMatching(/^text\/(css|javascript)/),
      ]);
      expect(file.text).not.toContain("sk_test_");
    }
    // Built by the start, where it was not there.
    const console = await send("GET", `${example.api}/console/`, anonymous);
    expect([console.status, console.text.includes("<title>Oncekey console</title>")]).toEqual([200, true]);
  } finally {
    process.kill(example.pid, "SIGTERM");
    await example.ended;
    removeDataDir(dir);
  }
});

withShop((shop) => {
  it("runs under a policy that allows this origin's files only, and nothing inside of the page", async () => {
    const profile = await newProfile();
    const complaints: string[] = [];
    // What was answered 409 while it ran is told there as well, and sent again: no complaint.
    const isAnswer = (text: string) => text.startsWith("Failed to load resource: the server responded with a status");
    profile.on("console", (message) => {
      if (!isAnswer(message.text())) complaints.push(message.text());
    });
    const tab = await openTab(profile, shop);
    const { headers } = await send("GET", `${shop.api}/checkout`, anonymous);
    expect(headers["content-security-policy"]).toContain("default-src 'none'; script-src 'self'");
    expect(headers["content-security-policy"]).not.toContain("unsafe");
    await tab.fill(4002);
    await tab.pay();
    await tab.shows("paid");
    expect(complaints).toEqual([]);
  });

  it.each(["indexeddb", "localstorage"])("neither page nor %s hold the token or the session", async (storage) => {
    const profile = await newProfile();
    const tab = await openTab(profile, shop, `?storage=${storage}`);
    await tab.fill(4003);
    await tab.pay();
    await tab.shows("paid");
    const cookies = await profile.cookies(`${shop.api}/v1/charges`);
    expect(cookies).toMatchObject([{ httpOnly: true, sameSite: "Strict" }]);
    const text = await readable(tab.page);
    // What is looked through does hold what was kept: the answer of the payment.
    expect(text).toMatch(/firstSentAt/);
    for (const secret of ["sk_test_", "Bearer", cookies[0]?.value ?? "no cookie"]) expect(text).not.toContain(secret);
  });

  it("only the page's own session acts without a token", async () => {
    const url = `${shop.api}/v1/charges`;
    const forged = { token: null, key: "forged", headers: { cookie: "checkout_session=guess" }, body: CHARGE };
    expect((await send("POST", url, forged)).status).toBe(401);
    expect((await list(url)).filter((one) => one.amount_minor === CHARGE.amount_minor)).toEqual([]);
  });

  it("says each state in a live region, and every field has a label", async () => {
    const tab = await openTab(await newProfile(), shop);
    expect(await tab.page.getByRole("status").getAttribute("aria-live")).toBe("polite");
    await tab.page.getByLabel("Amount in euros").fill("40.04");
    await tab.page.getByLabel("Card").selectOption("tok_declined");
    await tab.page.getByRole("button", { name: "Pay", exact: true }).click();
    await tab.page.getByRole("status").getByText("The card was declined").waitFor();
  });
});
