import { existsSync, readFileSync, statSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { createDatabase, query } from "../support/postgres.ts";
import { cli } from "./support/cli.ts";
import { runningCli } from "./support/cli-worker.ts";

const READY = /^oncekey console ready (\{.*\})\n$/;

describe("oncekey console", () => {
  it("serves the console on the loopback, tells where user and password stand, and takes both away at its end", async () => {
    const { url } = await createDatabase();
    const running = await runningCli(
      ["console", "--port", "0", "--user", "ada", "--tenant", "acme", "--read-only"],
      url,
    );
    await running.until("stdout", READY);
    const [, json = ""] = READY.exec(running.stdout()) ?? [];
    const ready = JSON.parse(json) as { url: string; credentials: string };
    expect(ready.url).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/console\/$/);
    expect(statSync(ready.credentials).mode & 0o777).toBe(0o600);
    const { user, password } = JSON.parse(readFileSync(ready.credentials, "utf8")) as {
      user: string;
      password: string;
    };
    expect(running.stdout() + running.stderr()).not.toContain(password);
    expect((await fetch(`${ready.url}api/overview`)).status).toBe(401);
    const headers = { origin: new URL(ready.url).origin, "content-type": "application/json" };
    const signed = await fetch(`${ready.url}api/session`, {
      method: "POST",
      headers,
      body: JSON.stringify({ user, password }),
    });
    expect(await signed.json()).toMatchObject({
      operator: { name: "ada", tenant: "acme", readOnly: true },
      signedIn: "here",
    });
    const cookie = signed.headers.get("set-cookie")?.split(";")[0] ?? "";
    const overview = await fetch(`${ready.url}api/overview`, { headers: { cookie } });
    expect(await overview.json()).toMatchObject({ tables: [], unresolved: { count: 0 } });
    expect((await fetch(new URL("/", ready.url), { redirect: "manual" })).headers.get("location")).toBe("/console/");
    running.signal("SIGTERM");
    expect(await running.ended).toBe(0);
    expect(existsSync(ready.credentials)).toBe(false);
    expect(await query(url, "SELECT FROM oncekey.audit")).toEqual([]);
  });

  it("makes the indexes of lists and searches, and drops them", async () => {
    const { url } = await createDatabase();
    const names = async () =>
      (await query(url, "SELECT indexname AS name FROM pg_indexes WHERE indexname LIKE 'console%' ORDER BY 1")).map(
        ({ name }) => name,
      );
    const made = await cli(["console", "--create-indexes", "--json"], { url });
    expect([made.code, JSON.parse(made.stdout)]).toEqual([0, { made: 11 }]);
    expect(await names()).toContain("console_entry_reference");
    expect((await cli(["console", "--create-indexes"], { url })).stdout).toBe("Nothing had to be made.\n");
    const dropped = await cli(["console", "--drop-indexes"], { url });
    expect([dropped.code, dropped.stdout]).toEqual([0, "11 indexes were dropped.\n"]);
    expect(await names()).toEqual([]);
  });

  it("refuses what it cannot do, in one line", async () => {
    const { url } = await createDatabase();
    for (const [args, words] of [
      [["--port", "70000"], /--port must be a whole number/],
      [["--create-indexes", "--drop-indexes"], /exclude each other/],
      [["--user", " "], /--user must name somebody/],
      [["--port", "0", "--metrics", "ftp://x"], /--metrics must be an http or https URL/],
      [["--port", "0", "--host", "192.0.2.1"], /cannot listen there/],
    ] as const) {
      const { code, stderr, stdout } = await cli(["console", ...args], { url });
      expect([args, code, stdout]).toEqual([args, 2, ""]);
      expect(stderr).toMatch(words);
    }
  });
});
