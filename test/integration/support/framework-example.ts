import { spawn } from "node:child_process";
import { fileURLToPath } from "node:url";
import { expect, it, onTestFinished } from "vitest";

const root = fileURLToPath(new URL("../../../", import.meta.url));

/** A running example of examples/frameworks. */
export interface FrameworkExample {
  readonly url: string;
  /** Asks it to stop; resolves with its exit code, or the signal that ended it. */
  stop(): Promise<number | NodeJS.Signals>;
}

/** How an example is started. */
export interface ExampleStart {
  /** Default: the file of its name in examples/frameworks, run from its source. */
  readonly args?: readonly string[];
  readonly cwd?: string;
  readonly env?: Readonly<Record<string, string>>;
}

/** Starts an example; it ends with the test. Resolves when it says that it is ready. */
export async function startExample(name: string, start: ExampleStart = {}): Promise<FrameworkExample> {
  const source = ["--conditions=oncekey-source", "--import", "tsx", `examples/frameworks/${name}.ts`];
  const { DATABASE_URL: _, ...inherited } = process.env;
  const env = { ...inherited, PORT: "0", ...start.env };
  const child = spawn(process.execPath, start.args ?? source, { cwd: start.cwd ?? root, env, stdio: "pipe" });
  const ended = new Promise<number | NodeJS.Signals>((resolve) =>
    child.once("close", (code, signal) => resolve(code ?? signal ?? 0)),
  );
  onTestFinished(async () => {
    child.kill("SIGKILL");
    await ended;
  });
  const stop = () => {
    child.kill("SIGTERM");
    return ended;
  };
  return { url: await readyUrl(name, child, ended), stop };
}

function readyUrl(name: string, child: ReturnType<typeof spawn>, ended: Promise<unknown>): Promise<string> {
  return new Promise((resolve, reject) => {
    let said = "";
    const hear = (text: string) => {
      said += text;
      const ready = new RegExp(`^oncekey ${name} ready (.*)$`, "m").exec(said);
      if (ready !== null) resolve((JSON.parse(ready[1] ?? "") as { url: string }).url);
    };
    child.stdout?.setEncoding("utf8").on("data", hear);
    child.stderr?.setEncoding("utf8").on("data", (text: string) => {
      said += text;
    });
    void ended.then((how) => reject(new Error(`The example ${name} ended (${String(how)}):\n${said}`)));
  });
}

/** Sends a request with a key as tenant acme. */
export function postTo(url: string, path: string, key: string, body: unknown, tenant = "acme"): Promise<Response> {
  const headers = { authorization: `Bearer ${tenant}`, "content-type": "application/json", "idempotency-key": key };
  return fetch(`${url}${path}`, { method: "POST", headers, body: JSON.stringify(body) });
}

interface Effects {
  readonly orders: readonly { readonly item: string }[];
  readonly refunds: readonly { readonly order: string }[];
}

async function effectsOf(url: string): Promise<Effects> {
  const answer = await fetch(`${url}/effects`, { headers: { authorization: "Bearer acme" } });
  return (await answer.json()) as Effects;
}

const ROUTES = [
  { path: "/orders", body: { item: "book" }, other: { item: "pen" } },
  { path: "/refunds", body: { order: "ord_1" }, other: { order: "ord_2" } },
] as const;

/** Registers the test of one example: each route once and its replay, a mismatch, no token, and a clean stop. */
export function exampleCases(name: string, start?: ExampleStart): void {
  it(`${name}: runs each request once, replays it with a mark, and stops cleanly`, async () => {
    const { url, stop } = await startExample(name, start);
    for (const { path, body, other } of ROUTES) {
      const first = await postTo(url, path, "key-1", body);
      const text = await first.text();
      expect([first.status, first.headers.get("idempotent-replayed")], text).toEqual([201, null]);
      const again = await postTo(url, path, "key-1", body);
      expect([again.status, again.headers.get("idempotent-replayed"), await again.text()]).toEqual([201, "true", text]);
      expect((await postTo(url, path, "key-1", other)).status).toBe(422);
      expect((await postTo(url, path, "key-1", body, "123")).status).toBe(401);
    }
    const { orders, refunds } = await effectsOf(url);
    expect(orders.map(({ item }) => item)).toEqual(["book"]);
    expect(refunds.map(({ order }) => order)).toEqual(["ord_1"]);
    expect(await stop()).toBe(0);
  });
}
