import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, rmSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, describe, expect, it } from "vitest";
import { freshKey, openApi } from "../../src/verify/api.ts";
import { withKeyMember } from "../../src/verify/bodies.ts";
import { dialects, type RunReport, runCases, type Target } from "../../src/verify/index.ts";

const servers: Server[] = [];
afterAll(() => {
  for (const server of servers) {
    server.close();
    server.closeAllConnections();
  }
});

type Handle = (req: IncomingMessage, res: ServerResponse, body: string) => unknown;

async function listening(handle: Handle): Promise<string> {
  const server = createServer(async (req, res) => {
    let body = "";
    for await (const chunk of req) body += String(chunk);
    handle(req, res, body);
  });
  servers.push(server);
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("no port");
  return `http://127.0.0.1:${address.port}`;
}

function targetAt(base: string, more: Partial<Target> = {}): Target {
  const dialect = dialects.get("ietf");
  if (dialect === undefined) throw new Error("no dialect");
  return {
    ...{ url: new URL(`${base}/orders`), method: "POST", dialect, contentType: "application/json", timeoutMs: 20_000 },
    ...{ body: Buffer.from('{"a":1,"card":"tok_4242424242"}'), headers: [["Authorization", "Bearer sk_live_SECRET"]] },
    ...{ count: null, otherHeaders: null, otherOperation: null, otherBody: null, refusedBody: null, numberPath: null },
    ...{ revocation: null, revokedHeaders: null, lateHeaders: [], slowHeaders: [], retentionMs: null },
    ...more,
  };
}

/** Answers as it should; a request without a key gets this refusal. */
function shop(refusal: (req: IncomingMessage, body: string) => string): Handle {
  const made = new Map<string, number>();
  return (req, res, body) => {
    const key = req.headers["idempotency-key"];
    if (typeof key !== "string") return res.writeHead(400).end(refusal(req, body));
    const order = made.get(key) ?? made.size + 1;
    made.set(key, order);
    return res.writeHead(201).end(JSON.stringify({ order }));
  };
}

describe("a refusal's code", () => {
  const run = async (refusal: Parameters<typeof shop>[0]): Promise<RunReport> =>
    await runCases(targetAt(await listening(shop(refusal))), { only: ["key-missing"] });

  it.each([
    ["an object that has no text", '{"code":{"toString":1,"valueOf":2}}'],
    ["a list too deep to be made text", `{"code":${"[".repeat(200_000)}${"]".repeat(200_000)}}`],
  ])("that is %s ends no run", async (_name, refusal) => {
    const { cases } = await run(() => refusal);
    expect(cases.map(({ verdict }) => verdict)).toEqual(["pass", "pass"]);
  });

  it.each<[string, Parameters<typeof shop>[0], string]>([
    ["a header's value", (req) => JSON.stringify({ code: req.headers.authorization?.slice(7) }), "sk_live_SECRET"],
    ["a part of the body", (_req, body) => JSON.stringify({ code: JSON.parse(body).card }), "tok_4242424242"],
  ])("that repeats %s is not printed", async (_name, refusal, secret) => {
    expect(JSON.stringify(await run(refusal))).not.toContain(secret);
  });

  it("that holds the key is not printed", async () => {
    let key = "";
    const base = await listening((req, res) => {
      key = String(req.headers["idempotency-key"]).replaceAll('"', "");
      res.writeHead(400).end(JSON.stringify({ code: `bad-${key}` }));
    });
    const report = await runCases(targetAt(base), { only: [] });
    expect(key).not.toBe("");
    expect(JSON.stringify(report)).not.toContain(key);
  });
});

/** What credentials may do, and how the equipment that takes that away answers. */
interface Desk {
  revoked: boolean;
  /** Called in place of an answer to an order, while revoked. */
  readonly onOrder?: (res: ServerResponse) => void;
  readonly onRevoke?: (res: ServerResponse) => void;
  readonly onRestore?: (res: ServerResponse) => void;
}

async function deskAt(desk: Desk): Promise<string> {
  const orders = shop(() => "{}");
  const done = (res: ServerResponse) => void res.writeHead(204).end();
  return await listening((req, res, body) => {
    if (req.url === "/orders" && desk.revoked && desk.onOrder !== undefined) return desk.onOrder(res);
    if (req.url === "/orders") return orders(req, res, body);
    desk.revoked = req.url === "/revoke";
    return (desk.revoked ? (desk.onRevoke ?? done) : (desk.onRestore ?? done))(res);
  });
}

function revocationAt(base: string): NonNullable<Target["revocation"]> {
  const address = (path: string) => ({ url: new URL(`${base}${path}`), body: null });
  return { revoke: address("/revoke"), restore: address("/restore") };
}

describe("credentials that were to be revoked", () => {
  it.each<[string, (res: ServerResponse) => void]>([
    ["an error", (res) => res.writeHead(500).end()],
    ["nothing", (res) => res.socket?.destroy()],
  ])("are given back where the revoke URL did it and answered %s", async (_what, onRevoke) => {
    const desk: Desk = { revoked: false, onRevoke };
    const base = await deskAt(desk);
    const target = targetAt(base, { revocation: revocationAt(base) });
    const { cases } = await runCases(target, { only: ["replay-revoked"] });
    expect(cases.at(-1)).toMatchObject({ verdict: "cannot-tell" });
    expect(desk.revoked).toBe(false);
  });
});

describe("a run that is ended from outside", () => {
  it.each<[string, (res: ServerResponse) => void, string, string]>([
    ["gives back what was revoked", (res) => res.writeHead(204).end(), "cannot-tell", "The run was ended before"],
    ["says where it could not be given back", (res) => res.writeHead(500).end(), "fail", "The restore URL did not"],
  ])("%s, and sends nothing more", async (_what, onRestore, verdict, seen) => {
    const abort = new AbortController();
    const desk: Desk = { revoked: false, onRestore, onOrder: () => abort.abort() };
    const base = await deskAt(desk);
    const target = targetAt(base, { revocation: revocationAt(base) });
    const only = ["replay-revoked", "busy-answer", "retry-after"];
    const { cases, requests } = await runCases(target, { only, signal: abort.signal });
    expect(desk.revoked).toBe(false);
    // Three of the opening, then the first of the case and its replay.
    expect(requests).toBe(5);
    expect(cases.map((each) => each.verdict)).toEqual(["pass", verdict, "cannot-tell", "cannot-tell"]);
    expect(cases[1]?.seen).toContain(seen);
  });

  it("waits for nothing", async () => {
    const abort = new AbortController();
    const base = await listening((req, res, body) => {
      shop(() => "{}")(req, res, body);
    });
    // An hour within: only the end of the run ends the wait.
    const api = openApi(targetAt(base), abort.signal);
    const waiting = api.pause(3_600_000);
    abort.abort();
    await expect(waiting).rejects.toThrow("The run was ended");
    await expect(api.send(freshKey(api.target))).rejects.toThrow("The run was ended");
    expect(api.sent()).toBe(0);
  });
});

describe("what is held of answers", () => {
  it("is bounded for all that come at once", async () => {
    const megabytes = 15;
    const bytes = Buffer.alloc(megabytes * 1024 * 1024);
    const base = await listening((_req, res) => res.writeHead(201).end(bytes));
    const api = openApi(targetAt(base));
    const replies = await api.storm(freshKey(api.target), 12);
    const held = replies.filter((reply) => reply.kind === "answer");
    expect(held.length * megabytes).toBeLessThanOrEqual(128);
    expect(replies.filter((reply) => reply.kind === "none").map(({ why }) => why)).toContain("too_long");
  });

  it("is of one that told to come back its judgement alone", async () => {
    const base = await listening((_req, res) => res.writeHead(409, { "retry-after": "7" }).end("x".repeat(100_000)));
    const api = openApi(targetAt(base));
    await api.send(freshKey(api.target));
    expect(api.busy).toEqual([
      {
        status: 409,
        told: expect.stringMatching(/^409 \(100000 bytes, sha256 [0-9a-f]{8}\)$/),
        retryAfter: "7",
        lack: expect.stringContaining("application/problem+json"),
      },
    ]);
  });
});

const root = fileURLToPath(new URL("../../", import.meta.url));

interface Running {
  kill(): void;
  readonly over: Promise<{ readonly code: number | null; readonly stdout: string; readonly stderr: string }>;
  /** Resolves once standard error holds it. */
  says(text: string): Promise<void>;
}

/** `oncekey verify` as a process of its own. */
function verifying(args: readonly string[]): Running {
  const node = ["--conditions=oncekey-source", "--import", "tsx", join(root, "src/cli/main.ts"), "verify"];
  const child = spawn(process.execPath, [...node, ...args], { cwd: root, stdio: ["ignore", "pipe", "pipe"] });
  const output = { stdout: "", stderr: "" };
  for (const name of ["stdout", "stderr"] as const) {
    child[name].setEncoding("utf8").on("data", (text: string) => {
      output[name] += text;
    });
  }
  return {
    kill: () => void child.kill("SIGINT"),
    over: once(child, "close").then(([code]) => ({ code, ...output })),
    async says(text) {
      while (!output.stderr.includes(text)) await once(child.stderr, "data");
    },
  };
}

/** Something that is waited for until it comes. */
function signpost(): { readonly promise: Promise<void>; resolve(): void } {
  let resolve = () => {};
  const promise = new Promise<void>((done) => {
    resolve = done;
  });
  return { promise, resolve: () => resolve() };
}

const body = ["--body", '{"a":1}'];

describe("oncekey verify that gets a signal between revoke and restore", () => {
  const withDesk = async (desk: Desk) => {
    const base = await deskAt(desk);
    const urls = ["--revoke-url", `${base}/revoke`, "--restore-url", `${base}/restore`];
    return verifying([`${base}/orders`, ...body, ...urls, "--only", "replay-revoked"]);
  };

  it("restores, reports how far it came, and ends with 130", async () => {
    const waits = signpost();
    const desk: Desk = { revoked: false, onOrder: () => waits.resolve() };
    const run = await withDesk(desk);
    await waits.promise;
    expect(desk.revoked).toBe(true);
    run.kill();
    const { code, stdout } = await run.over;
    expect(desk.revoked).toBe(false);
    expect(code).toBe(130);
    expect(stdout).toMatch(/^cannot-tell {5}replay-revoked: .*\n {16}The run was ended before/m);
  });

  it("ends at once at the second one", async () => {
    const waits = signpost();
    // Neither order nor restoring is ever answered.
    const run = await withDesk({ revoked: false, onOrder: () => waits.resolve(), onRestore: () => {} });
    await waits.promise;
    run.kill();
    await run.says("Ended by a signal");
    // One that comes right behind the first is its echo.
    const again = setInterval(run.kill, 100);
    const { code, stdout } = await run.over;
    clearInterval(again);
    expect({ code, stdout }).toEqual({ code: 130, stdout: "" });
  });
});

describe("oncekey verify with odd arguments", () => {
  it("refuses a form that is none where it is to hold the key", async () => {
    const form = { body: Buffer.from("a%zz=1"), contentType: "application/x-www-form-urlencoded" };
    expect(withKeyMember(form, "key", "1")).toBe(null);
    const given = ["--body", "a%zz=1", "--content-type", form.contentType, "--key-member", "key"];
    const { code, stdout, stderr } = await verifying(["http://127.0.0.1:1/", ...given]).over;
    expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
    expect(stderr).toMatch(/^oncekey: The dialect's keys travel in the body: each body must be /);
  });

  it("warns of every URL that is asked in the clear", async () => {
    const far = "http://[::ffff:127.0.0.1]:1/";
    const urls = ["--count-url", "--other-url", "--revoke-url", "--restore-url"].flatMap((option) => [option, far]);
    const { stderr } = await verifying(["http://127.0.0.1:1/", ...body, ...urls, "--only", "replay-status"]).over;
    const warned = [...stderr.matchAll(/^oncekey: (\S+) is neither https nor on this machine/gm)].map(
      ([, what]) => what,
    );
    expect(warned).toEqual(["--count-url", "--other-url", "--revoke-url", "--restore-url"]);
  });

  it("prints its report where the JUnit file can no longer be written, and ends with 1", async () => {
    const folder = await mkdtemp(join(tmpdir(), "verify-"));
    const file = join(folder, "report.xml");
    const orders = shop(() => "{}");
    const base = await listening((req, res, text) => {
      rmSync(file, { recursive: true, force: true });
      mkdirSync(file);
      return orders(req, res, text);
    });
    const run = verifying([`${base}/orders`, ...body, "--junit", file, "--only", "replay-status"]);
    const { code, stdout, stderr } = await run.over;
    await rm(folder, { recursive: true });
    expect(code).toBe(1);
    expect(stdout).toContain("2 passed, 0 failed");
    expect(stderr).toContain("The file of --junit could not be written");
  });
});
