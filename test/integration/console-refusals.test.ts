import { hashPassword } from "oncekey/console";
import { describe, expect, it } from "vitest";
import { ADA, type ConsoleWorld, consoleWorld, unresolved } from "./support/console-world.ts";

const reason = "ticket 4711";
const password = "correct horse battery";

/** Every change, each with a body that would be carried out. */
async function changes(world: ConsoleWorld) {
  const id = await unresolved(world);
  return [
    [`entries/${id}/reveal`, { what: "key", reason }],
    [`entries/${id}/retry`, { reason }],
    [`entries/${id}/resolve`, { verdict: "released", force: true, reason }],
    ["outbox/m/resend", { reason }],
    ["outbox/m/discard", { reason }],
  ] as const;
}

const audited = async ({ ask }: ConsoleWorld) => (await ask("GET", "audit")).body.records;

describe("a change is refused", () => {
  it("that comes from elsewhere, is no JSON, or lacks the token of its session or a reason", async () => {
    const world = await consoleWorld();
    const { csrf } = (await world.ask("GET", "session")).body;
    for (const [path, body] of await changes(world)) {
      const send = async (headers: Record<string, string>, given: unknown = body) => {
        const { status, body: told } = await world.ask("POST", path, given, { "x-oncekey-csrf": csrf, ...headers });
        return [status, told.error?.code];
      };
      expect(await send({ origin: "https://evil.example" })).toEqual([403, "console_cross_origin"]);
      expect(await send({ origin: "null" })).toEqual([403, "console_cross_origin"]);
      expect(await send({ origin: "", "sec-fetch-site": "same-site" })).toEqual([403, "console_cross_origin"]);
      expect(await send({ "sec-fetch-site": "cross-site" })).toEqual([403, "console_cross_origin"]);
      expect(await send({ "content-type": "text/plain" })).toEqual([415, "console_json_needed"]);
      expect(await send({ "content-type": "application/x-www-form-urlencoded" })).toEqual([415, "console_json_needed"]);
      expect(await send({ "x-oncekey-csrf": "" })).toEqual([403, "console_csrf"]);
      expect(await send({ "x-oncekey-csrf": `${csrf}a` })).toEqual([403, "console_csrf"]);
      for (const bad of ["", " ", undefined]) {
        expect(await send({}, { ...body, reason: bad })).toEqual([422, "console_reason_missing"]);
      }
      expect(await send({}, { ...body, reason: "x".repeat(2_001) })).toEqual([400, "console_request_invalid"]);
      expect(await send({}, "{")).toEqual([400, "console_request_invalid"]);
    }
    expect(await audited(world)).toEqual([]);
    expect((await world.ask("GET", "unresolved")).body.entries).toHaveLength(1);
    expect(world.failures).toEqual([]);
  });

  it("with the token of another operator", async () => {
    const world = await consoleWorld();
    const { csrf } = (await world.ask("GET", "session")).body;
    const [[path, body] = ["", {}]] = await changes(world);
    for (const operator of [
      { ...ADA, name: "eve" },
      { ...ADA, tenant: "acme" },
    ]) {
      world.who.operator = operator;
      expect((await world.ask("POST", path, body, { "x-oncekey-csrf": csrf })).body.error.code).toBe("console_csrf");
    }
  });

  it("in a console that changes nothing, or of an operator who may not", async () => {
    for (const [options, operator] of [
      [{ readOnly: true }, ADA],
      [{}, { ...ADA, readOnly: true }],
    ] as const) {
      const world = await consoleWorld(options);
      world.who.operator = operator;
      expect((await world.ask("GET", "session")).body.operator).toMatchObject({ readOnly: true, mayReveal: false });
      for (const [path, body] of await changes(world))
        expect([path, (await world.change(path, body)).status]).toEqual([path, 403]);
      const [{ id }] = (await world.ask("GET", "unresolved")).body.entries;
      const { decisions } = (await world.ask("GET", `entries/${id}`)).body;
      expect(decisions).toMatchObject({ mayResolve: false, mayRetry: false, why: "You may look and not change." });
      expect(await audited(world)).toEqual([]);
    }
  });

  it("that would show what is masked, where that is switched off or not granted", async () => {
    for (const [options, operator, code] of [
      [{ reveal: false }, ADA, "console_reveal_off"],
      [{}, { ...ADA, mayReveal: false }, "console_reveal_denied"],
    ] as const) {
      const world = await consoleWorld(options);
      world.who.operator = operator;
      const id = await unresolved(world, { key: "a-key-of-some-length" });
      for (const what of ["key", "derived_keys", "outcome"]) {
        const told = await world.change(`entries/${id}/reveal`, { what, reason });
        expect(told).toMatchObject({ status: 403, body: { error: { code } } });
      }
      expect(await audited(world)).toEqual([]);
    }
  });
});

describe("whoever is not known", () => {
  it("is shown nothing: by the application's own authentication", async () => {
    const world = await consoleWorld();
    world.who.operator = null;
    for (const path of [
      "session",
      "overview",
      "series",
      "entries",
      "unresolved",
      "outbox",
      "clients",
      "upkeep",
      "audit",
      "stream",
    ]) {
      expect([path, (await world.ask("GET", path)).status]).toEqual([path, 401]);
    }
    for (const [path, body] of await changes(world)) expect((await world.ask("POST", path, body)).status).toBe(401);
    expect((await world.ask("POST", "session", { user: "ada", password })).status).toBe(400);
  });

  it("is shown nothing where authorize gives something else than an operator: never as one who sees all", async () => {
    const world = await consoleWorld();
    for (const given of [
      { name: "ada" },
      { name: "ada", tenant: undefined },
      { name: "", tenant: null },
      { tenant: "acme" },
      true,
    ]) {
      world.who.operator = given as never;
      expect((await world.ask("GET", "overview")).status).toBe(500);
    }
    expect(world.failures).toHaveLength(5);
  });

  it("signs in with user and password; the cookie is the browser's alone, and ends with the session", async () => {
    const passwords = [{ name: "ada", tenant: null, passwordHash: await hashPassword(password) }];
    const world = await consoleWorld({ passwords });
    expect(await world.ask("GET", "session")).toMatchObject({ status: 401, body: { signIn: true } });
    for (const wrong of [{ user: "ada", password: "wrong" }, { user: "eve", password }, { user: "ada" }, {}]) {
      const told = await world.ask("POST", "session", wrong);
      expect([400, 401]).toContain(told.status);
      expect(told.headers.get("set-cookie")).toBeNull();
    }
    const cross = await world.ask("POST", "session", { user: "ada", password }, { origin: "https://evil.example" });
    expect(cross.status).toBe(403);
    const signed = await world.ask("POST", "session", { user: "ada", password });
    const line = signed.headers.get("set-cookie") ?? "";
    expect(line).toMatch(/^oncekey_console=[\w-]{43}; Path=\/console; HttpOnly; SameSite=Strict$/);
    const cookie = line.split(";")[0] ?? "";
    expect((await world.ask("GET", "overview", undefined, { cookie })).status).toBe(200);
    expect((await world.ask("GET", "overview", undefined, { cookie: `${cookie}; oncekey_console=x` })).status).toBe(
      401,
    );
    const { csrf } = signed.body;
    expect((await world.ask("DELETE", "session", undefined, { cookie })).status).toBe(403);
    expect((await world.ask("DELETE", "session", undefined, { cookie, "x-oncekey-csrf": csrf })).status).toBe(204);
    expect((await world.ask("GET", "overview", undefined, { cookie })).status).toBe(401);
    expect(await world.query("SELECT action, acted_by FROM oncekey.audit")).toEqual([
      { action: "sign_in", acted_by: "ada" },
    ]);
  });

  it("guesses slower and slower", async () => {
    const passwords = [{ name: "ada", tenant: null, passwordHash: await hashPassword(password) }];
    const world = await consoleWorld({ passwords });
    const statuses: number[] = [];
    for (let n = 0; n < 10; n++)
      statuses.push((await world.ask("POST", "session", { user: "ada", password: "wrong" })).status);
    expect(statuses.slice(0, 5)).toEqual([401, 401, 401, 401, 401]);
    expect(statuses).toContain(429);
  });
});

describe("every answer", () => {
  it("forbids what the page does not need, and is never stored", async () => {
    const world = await consoleWorld();
    const page = await fetch(`${world.origin}/console/`);
    for (const { headers } of [page, await world.ask("GET", "overview"), await world.ask("GET", "no-such-route")]) {
      expect(headers.get("content-security-policy")).toBe(
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
      );
      expect(headers.get("x-content-type-options")).toBe("nosniff");
      expect(headers.get("referrer-policy")).toBe("no-referrer");
      expect(headers.get("cache-control")).toBe("no-store");
    }
    for (const path of [
      "/console/../package.json",
      "/console/%2e%2e/package.json",
      "/console/assets/..%2f..%2fpackage.json",
    ]) {
      const answered = await fetch(`${world.origin}${path}`);
      expect(answered.status).toBe(404);
    }
    expect((await fetch(`${world.origin}/console`, { redirect: "manual" })).headers.get("location")).toBe("/console/");
    expect((await fetch(`${world.origin}/elsewhere`)).status).toBe(404);
    expect((await fetch(`${world.origin}/consolefoo`)).status).toBe(404);
  });
});
