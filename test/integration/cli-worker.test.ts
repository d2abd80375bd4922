import { connect, createServer } from "node:net";
import { describe, expect, it } from "vitest";
import { freePort } from "../support/free-port.ts";
import { atEnd, createDatabase, passTime, query } from "../support/postgres.ts";
import { cli } from "./support/cli.ts";
import { entriesOn } from "./support/cli-entries.ts";
import { workerFromSources, workerOf } from "./support/cli-worker.ts";

const SERVICE = "test/integration/support/cli-worker-service.ts";
const READY = /^oncekey worker ready \{"sweeper":true,"relay":true,"pid":\d+\}\n$/;

const ONCE = "const once = { start: async () => {}, close: async () => ({ drained: true }) };";
const QUIET = "const quiet = { run: (signal) => new Promise((done) => signal.addEventListener('abort', done)) };";

/** A loopback port where nothing listens until `open` lets connections through to the database. */
async function lateDatabase(url: string) {
  const server = createServer((client) => {
    const upstream = connect(Number(new URL(url).port), "127.0.0.1");
    for (const socket of [client, upstream]) {
      socket.on("error", () => {});
      socket.on("close", () => void [client, upstream].map((one) => one.destroy()));
    }
    client.pipe(upstream).pipe(client);
  });
  const listen = (port: number) => new Promise<void>((done) => server.listen(port, "127.0.0.1", done));
  await listen(await freePort());
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("no port");
  await new Promise((done) => server.close(done));
  const late = new URL(url);
  late.port = String(address.port);
  return {
    url: late.href,
    async open() {
      await listen(address.port);
      atEnd(() => new Promise<void>((done) => server.close(() => done())));
    },
  };
}

describe("oncekey worker", () => {
  it("finishes what a lost process left, delivers its message, and ends with 0 on SIGTERM", async () => {
    const { url } = await createDatabase();
    const goOn = await (await entriesOn(url, { leaseMs: 600_000 })).standing("k1");
    await passTime(url, 3_600_000);
    const worker = workerFromSources(SERVICE, url);
    await worker.until("stderr", /^delivered standing\.created \S{43}$/m);
    expect(await query(url, "SELECT state, attempt FROM oncekey.entry")).toEqual([{ state: "succeeded", attempt: 2 }]);
    worker.signal("SIGTERM");
    expect(await worker.ended).toBe(0);
    expect(worker.stdout()).toMatch(READY);
    expect(worker.stderr()).toMatch(/\nclosed\n$/);
    expect(worker.stderr()).not.toContain("message-content");
    await goOn().catch(() => {});
  });

  it("goes on trying where the database is away, and is ready once it is there", async () => {
    const { url } = await createDatabase();
    const late = await lateDatabase(url);
    const worker = workerFromSources(SERVICE, late.url);
    await worker.until(
      "stderr",
      /^oncekey: The database cannot be reached\. Nothing was started; trying again in 1 s\.$/m,
    );
    expect(worker.stdout()).toBe("");
    await late.open();
    await worker.until("stdout", READY);
    worker.signal("SIGINT");
    expect(await worker.ended).toBe(0);
  });

  it("can be stopped while the database is away", async () => {
    const worker = workerFromSources(SERVICE, "postgres://postgres@127.0.0.1:1/none");
    await worker.until("stderr", /trying again/);
    worker.signal("SIGTERM");
    expect(await worker.ended).toBe(0);
    expect(worker.stdout()).toBe("");
  });

  it("ends at once where the schema is missing", async () => {
    const { url } = await createDatabase({ migrated: false });
    const worker = workerFromSources(SERVICE, url);
    expect(await worker.ended).toBe(1);
    expect(worker.stdout()).toBe("");
    expect(worker.stderr()).toMatch(/^oncekey: .*oncekey migrate/m);
    expect(worker.stderr()).toMatch(/closed\n/);
  });

  it("lets running work finish for as long as --grace says, and then ends nevertheless", async () => {
    const worker = await workerOf(
      `${ONCE} export const worker = () => ({ once, relay: { run: () => new Promise(() => {}) } });`,
      "mjs",
      "--grace=50ms",
    );
    await worker.until("stdout", /ready \{"sweeper":false,"relay":true/);
    worker.signal("SIGTERM");
    expect(await worker.ended).toBe(0);
    expect(worker.stderr()).toMatch(/^oncekey: Some work did not finish in time\./);
  });

  it("ends with 1 where a loop ends that was not asked to, and still closes", async () => {
    const sweeper = "{ run: async () => { throw new Error('broken on purpose'); } }";
    const worker = await workerOf(
      `${ONCE} ${QUIET} export const worker = async () => ({ once, relay: quiet, sweeper: ${sweeper},
       close: () => process.stderr.write("closed\\n") });`,
    );
    expect(await worker.ended).toBe(1);
    expect(worker.stderr()).toMatch(/^closed\noncekey: .*broken on purpose/);
  });

  it("does not wait for what the module left open", async () => {
    const worker = await workerOf(`${ONCE} ${QUIET} setInterval(() => {}, 1_000);
      export default () => ({ once, sweeper: quiet, close: () => { throw new Error("not closed"); } });`);
    await worker.until("stdout", /ready/);
    worker.signal("SIGTERM");
    expect(await worker.ended).toBe(0);
    expect(worker.stderr()).toMatch(/^oncekey: The "close" of the module failed \(Error\): not closed\./);
  });

  it.each<[string, string, RegExp]>([
    ["exports nothing", "export const other = 1;", /exports no function "worker"/],
    ["throws while it is loaded", "throw new TypeError('at load');", /could not be loaded \(TypeError\): at load\./],
    ["does not parse", "export const = 1;", /could not be loaded \(SyntaxError\)/],
    ["lacks a package", "import 'no-such-package-here';", /could not be loaded/],
    ["returns nothing", "export const worker = () => {};", /did not return \{ once/],
    ["returns no loops", `${ONCE} export const worker = () => ({ once });`, /neither a sweeper nor a relay/],
    ["returns half a loop", `${ONCE} export const worker = () => ({ once, relay: {} });`, /neither a sweeper nor/],
    [
      "returns a close that is none",
      `${ONCE} ${QUIET} export const worker = () => ({ once, relay: quiet, close: 1 });`,
      /"close".* is no function/,
    ],
    [
      "fails with a password",
      "export const worker = () => { throw new Error('cannot use amqp://user:hunter2@host'); };",
      /The module failed \(Error\): the details are withheld/,
    ],
  ])("refuses a module that %s", async (_, text, expected) => {
    const worker = await workerOf(text);
    expect(await worker.ended).toBe(1);
    expect(worker.stdout()).toBe("");
    expect(worker.stderr()).toMatch(/^oncekey: [^\n]+\n$/);
    expect(worker.stderr()).toMatch(expected);
    expect(worker.stderr()).not.toContain("hunter2");
  });

  it("loads TypeScript where the runtime does, and says what to do where it does not", async () => {
    const worker = await workerOf(
      `${ONCE} ${QUIET} export const worker = (): unknown => ({ once, sweeper: quiet });`,
      "mts",
    );
    if ((process.features as { typescript?: unknown }).typescript) {
      await worker.until("stdout", /ready/);
      return;
    }
    expect(await worker.ended).toBe(1);
    expect(worker.stderr()).toMatch(/This Node\.js cannot load a file with that ending\. For TypeScript use/);
  });

  it.each<[string, string[], RegExp]>([
    ["no module", [], /^oncekey: The module is missing or empty/],
    ["a file that is not there", ["./none.mjs"], /^oncekey: There is no file of that name/],
    ["a package that is not there", ["none-such"], /^oncekey: Neither a file nor an installed package/],
    ["a grace that is no duration", ["./none.mjs", "--grace=soon"], /^oncekey: --grace must be a duration such as/],
    ["a database that belongs to the module", ["./none.mjs", "--database=x"], /^oncekey: There is no option/],
  ])("refuses %s with 2", async (_, args, expected) => {
    const { code, stdout, stderr } = await cli(["worker", ...args]);
    expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
    expect(stderr).toMatch(expected);
  });
});
