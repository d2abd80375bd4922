import { fileURLToPath } from "node:url";
import type { Page } from "playwright-core";
import { beforeAll, describe, expect, it } from "vitest";
import { bundleForPage } from "../support/browser-bundle.ts";
import { newProfile, withChromium } from "../support/chromium.ts";
import { answer, cutAfter, cutBefore, type HostileServer, hostileServer } from "../support/hostile-server.ts";

const entry = fileURLToPath(new URL("../support/hooks-page.ts", import.meta.url));
const BODY = '{"amount":1200}';
const ways = [
  "fetch, the same init again",
  "fetch, an action",
  "axios, dispatching the failed configuration again",
  "ky",
  "createClient",
];

let script = "";
let page: Page;

/** A page of the server's own origin, so that no other origin's rules come in between. */
async function open({ url, seen }: HostileServer): Promise<void> {
  await page.goto(`${url}/page`);
  await page.addScriptTag({ content: script });
  seen.length = 0;
}

const send = (way: string, retries: number | undefined) =>
  page.evaluate(`hookWays[${JSON.stringify(way)}](${retries ?? ""})`) as Promise<number>;

/** The posts, without what the browser asks for by itself (its icon). */
const posts = ({ seen }: HostileServer) => seen.filter(({ method }) => method === "POST");

withChromium(() =>
  describe("in Chromium, a call that changes something", () => {
    beforeAll(async () => {
      script = await bundleForPage(entry);
      page = await (await newProfile()).newPage();
    });

    it.each(ways)("has one key and the same bytes in all attempts, and is done once: %s", async (way) => {
      const server = await hostileServer();
      await open(server);
      server.plan(cutBefore, answer(503), cutAfter);
      expect(await send(way, undefined)).toBe(201);
      const sent = posts(server);
      expect(sent.length).toBeGreaterThanOrEqual(4);
      expect(new Set(sent.map(({ key }) => key))).toEqual(new Set([expect.stringMatching(/^[0-9a-f-]{36}$/)]));
      expect(new Set(sent.map(({ body }) => body))).toEqual(new Set([BODY]));
      expect(server.executed).toEqual([BODY]);
    });

    it.each(ways)(
      "is done once where the browser itself sends it again, over a kept connection that broke: %s",
      async (way) => {
        const server = await hostileServer();
        await open(server);
        expect(await send(way, 0)).toBe(201);
        server.plan(cutAfter);
        await send(way, 0).catch(() => 0);
        const keys = posts(server).map(({ key }) => key);
        expect(keys.length).toBeGreaterThanOrEqual(2);
        expect(keys).not.toContain(undefined);
        expect(new Set(keys).size).toBe(2);
        expect(server.executed).toEqual([BODY, BODY]);
      },
    );
  }),
);
