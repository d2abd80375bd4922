import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import type { Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import express from "express";
import { Hono } from "hono";
import { type ConsoleRequest, createConsole } from "oncekey/console";
import { fromPg } from "oncekey/drivers/pg";
import { describe, expect, it } from "vitest";
import { atEnd, createDatabase, testPool } from "../support/postgres.ts";
import { consoleWorld, unresolved } from "./support/console-world.ts";

function page(): string {
  const folder = mkdtempSync(join(tmpdir(), "console-page-"));
  atEnd(async () => rmSync(folder, { recursive: true, force: true }));
  mkdirSync(join(folder, "assets"));
  writeFileSync(join(folder, "index.html"), "<!doctype html><title>Console</title>");
  writeFileSync(join(folder, "assets/index-abc.js"), "export {};");
  writeFileSync(join(folder, ".hidden.js"), "secret");
  return folder;
}

async function options() {
  const { url } = await createDatabase();
  return { driver: fromPg(testPool(url)), assets: page() };
}

async function listening(app: { listen(port: number, host: string, ready: () => void): Server }): Promise<string> {
  const server = await new Promise<Server>((done) => {
    const one: Server = app.listen(0, "127.0.0.1", () => done(one));
  });
  atEnd(async () => {
    server.closeAllConnections();
    await new Promise((done) => server.close(done));
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

describe("the console is mounted", () => {
  it("in Express behind its own authentication and parsers, and lets what is not its own pass", async () => {
    const app = express();
    app.use(express.json());
    app.use((req, _res, next) => {
      Object.assign(req, { staff: req.headers["x-staff"] });
      next();
    });
    const seen: ConsoleRequest[] = [];
    const authorize = (request: ConsoleRequest) => {
      seen.push(request);
      const { staff } = request.native as { staff?: string };
      return staff === undefined ? null : { name: staff, tenant: null };
    };
    const mounted = createConsole({ ...(await options()), authorize, basePath: "/ops/console" });
    app.use("/ops", mounted.node);
    app.get("/ops/other", (_req, res) => void res.send("other"));
    const origin = await listening(app);
    const api = `${origin}/ops/console/api`;
    expect((await fetch(`${api}/session`)).status).toBe(401);
    const headers = { "x-staff": "ada", origin, "content-type": "application/json" };
    const session = (await (await fetch(`${api}/session`, { headers })).json()) as { csrf: string; operator: object };
    expect(session.operator).toMatchObject({ name: "ada" });
    expect(seen.at(-1)).toMatchObject({ method: "GET", path: "/api/session" });
    const searched = await fetch(`${api}/entries/search`, {
      method: "POST",
      headers: { ...headers, "x-oncekey-csrf": session.csrf },
      body: JSON.stringify({ id: "00000000" }),
    });
    expect([searched.status, await searched.json()]).toEqual([200, { entries: [], next: null }]);
    expect(await (await fetch(`${origin}/ops/other`)).text()).toBe("other");
  });

  it("in Hono, with its page and files", async () => {
    const mounted = createConsole({ ...(await options()), authorize: () => ({ name: "ada", tenant: null }) });
    const app = new Hono();
    app.all("/console/*", (context) => mounted.fetch(context.req.raw));
    const get = (path: string, init?: RequestInit) => app.request(`http://ops.test${path}`, init);
    const index = await get("/console/");
    expect([index.status, index.headers.get("content-type")]).toEqual([200, "text/html; charset=utf-8"]);
    const script = await get("/console/assets/index-abc.js");
    expect(script.headers.get("cache-control")).toBe("private, max-age=31536000, immutable");
    expect(script.headers.get("content-type")).toBe("text/javascript; charset=utf-8");
    for (const path of [
      "/console/.hidden.js",
      "/console/none.js",
      "/console/assets/",
      "/console/assets/../.hidden.js",
    ]) {
      expect([path, (await get(path)).status]).toEqual([path, 404]);
    }
    expect((await get("/console/", { method: "POST" })).status).toBe(405);
    const head = await get("/console/", { method: "HEAD" });
    expect([head.status, await head.text()]).toEqual([200, ""]);
  });

  it("and refuses options that would show more than was meant", async () => {
    const { driver } = await options();
    const authorize = () => null;
    const make = (more: object) => () => createConsole({ driver, authorize, ...more });
    const refused = expect.objectContaining({ code: "oncekey_config_invalid" });
    expect(() => createConsole({ driver })).toThrow(refused);
    expect(make({ passwords: [] })).toThrow(refused);
    expect(() => createConsole({ driver, passwords: [] })).toThrow(refused);
    const passwords = [{ name: "ada", tenant: null, passwordHash: "secret" }];
    expect(() => createConsole({ driver, passwords })).toThrow(refused);
    for (const more of [
      { basePath: "console" },
      { basePath: "/console/" },
      { basePath: "/a/../b" },
      { origin: "https://ops.example.com/path" },
      { secret: new Uint8Array(8) },
      { metrics: "file:///etc/passwd" },
      { schema: "x; DROP" },
    ]) {
      expect(make(more)).toThrow(refused);
    }
  });
});

describe("a page that listens", () => {
  it("is told what waits, by server-sent events; a session has only a few, and places are given back", async () => {
    const world = await consoleWorld();
    await unresolved(world);
    const streams = await Promise.all(Array.from({ length: 4 }, () => fetch(`${world.origin}/console/api/stream`)));
    const readers = streams.map(({ body }) => body?.getReader());
    for (const reader of readers) {
      let text = "";
      while (!text.includes("event: overview")) text += new TextDecoder().decode((await reader?.read())?.value);
      const [, data = ""] = /event: overview\ndata: (.*)\n/.exec(text) ?? [];
      expect(JSON.parse(data)).toMatchObject({ unresolved: { count: 1 } });
      expect(text).toMatch(/^retry: \d+\n\n/);
    }
    expect(streams[0]?.headers.get("content-type")).toBe("text/event-stream; charset=utf-8");
    const status = async () => {
      const response = await fetch(`${world.origin}/console/api/stream`);
      await response.body?.cancel();
      return response.status;
    };
    expect(await status()).toBe(429);
    for (const reader of readers) await reader?.cancel();
    await expect.poll(status, { timeout: 60_000 }).toBe(200);
    world.console.close();
  });
});
