import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { beforeEach, describe, expect, it, onTestFinished } from "vitest";
import { gate } from "../support/gate.ts";
import { type HostileServer, hostileServer, type Step, serve } from "../support/hostile-server.ts";
import type { SenderSettings, SenderStep, ToldResult } from "./support/client-sender.ts";
import { type Sender, startSender } from "./support/client-senders.ts";

const NAME = "order 42";
const BODY = '{"amount":5}';
const SUCCESS: Omit<ToldResult, "replayed"> = { kind: "succeeded", body: { number: 1, of: { amount: 5 } } };

let server: HostileServer;
let directory: string;

beforeEach(async () => {
  server = await hostileServer();
  directory = await mkdtemp(join(tmpdir(), "oncekey-kill-"));
  onTestFinished(() => rm(directory, { recursive: true, force: true }));
});

const start = (own: Partial<SenderSettings> = {}): Promise<Sender> =>
  startSender({ directory, url: server.url, name: NAME, ...own });

/** One execution, one key and the same bytes in all that the server saw. */
function expectOnce(requests: number): void {
  expect(server.executed).toEqual([BODY]);
  expect(server.seen.map(({ body }) => body)).toEqual(Array(requests).fill(BODY));
  expect(new Set(server.seen.map(({ key }) => key)).size).toBe(1);
  expect(server.seen[0]?.key).toMatch(/^[0-9a-f-]{36}$/);
}

/** What a process learns that is started anew and goes on with what is kept, and what another one learns after it. */
async function restarted(): Promise<{ resumed: Readonly<Record<string, ToldResult>>; submitted: ToldResult }> {
  const result = await (await start({ resumes: true })).result();
  const later = await (await start({ resumes: true })).result();
  expect([later.resumed, later.submitted]).toEqual([{}, result.submitted]);
  expect((await readdir(directory)).filter((file) => !file.endsWith(".json"))).toEqual([]);
  return result;
}

describe("a process that is killed", () => {
  /** Step → whether a request had left before it, and whether something was pending after it. */
  const steps: Readonly<Record<SenderStep, { sent: boolean; pending: boolean }>> = {
    locked: { sent: false, pending: false },
    before_persist: { sent: false, pending: false },
    persisted: { sent: false, pending: true },
    before_attempt: { sent: false, pending: true },
    attempt_persisted: { sent: false, pending: true },
    before_send: { sent: false, pending: true },
    answered: { sent: true, pending: true },
    before_recorded: { sent: true, pending: true },
    recorded: { sent: true, pending: false },
    before_delivery: { sent: true, pending: false },
  };
  for (const [step, { sent, pending }] of Object.entries(steps)) {
    it(`at "${step}": one execution, and the next process delivers the result`, async () => {
      const first = await start({ stopAt: step as SenderStep });
      expect(await first.stopped()).toBe(step);
      expect(server.executed).toEqual(sent ? [BODY] : []);
      await first.kill();
      const { resumed, submitted } = await restarted();
      expect(submitted).toMatchObject(SUCCESS);
      expect(resumed).toEqual(pending ? { [NAME]: submitted } : {});
      expect(submitted.replayed).toBe(sent && pending);
      expectOnce(sent && pending ? 2 : 1);
    });
  }

  it("when its request has arrived and nothing was done yet", async () => {
    const [arrived, killed] = [gate(), gate()];
    server.plan(async ({ work }) => {
      arrived.open();
      await killed.promise;
      await work();
    });
    const first = await start();
    await arrived.promise;
    await first.kill();
    killed.open();
    expect((await restarted()).resumed).toMatchObject({ [NAME]: SUCCESS });
    expectOnce(2);
  });

  it("when the work is done and the answer is on its way", async () => {
    const done = gate();
    server.plan(async ({ work }) => {
      await work();
      done.open();
    });
    const first = await start();
    await done.promise;
    expect(server.executed).toEqual([BODY]);
    await first.kill();
    expect((await restarted()).resumed).toMatchObject({ [NAME]: { ...SUCCESS, replayed: true } });
    expectOnce(2);
  });

  it("when half of the answer has arrived", async () => {
    const half = gate();
    server.plan(async ({ work, response }) => {
      const { status, headers, body } = await work();
      response.writeHead(status, headers).write(body.subarray(0, 5), () => half.open());
    });
    const first = await start();
    await half.promise;
    await first.kill();
    expect((await restarted()).resumed).toMatchObject({ [NAME]: { ...SUCCESS, replayed: true } });
    expectOnce(2);
  });

  it("again and again, at another step each time", async () => {
    const sequence: readonly SenderStep[] = ["persisted", "before_send", "answered", "before_recorded", "answered"];
    for (const stopAt of sequence) {
      const one = await start({ stopAt, resumes: true });
      // The first of them is past once the submission is made.
      expect(await one.stopped()).toBe(stopAt);
      await one.kill();
    }
    expect((await restarted()).resumed).toMatchObject({ [NAME]: { ...SUCCESS, replayed: true } });
    expectOnce(4);
  });
});

/** Serves, and keeps count of the requests of living processes that are under way at one time. */
function counting() {
  const inside = new Set<string>();
  const seen = { most: 0 };
  const step =
    (then: Step): Step =>
    async (exchange) => {
      const sender = String(exchange.request.headers["x-sender"]);
      inside.add(sender);
      seen.most = Math.max(seen.most, inside.size);
      await then(exchange);
      inside.delete(sender);
    };
  return { step, seen, kill: ({ pid }: Sender) => inside.delete(String(pid)) };
}

describe("processes that submit one action at the same time", () => {
  it("send one request, and both learn the result", async () => {
    const { step, seen } = counting();
    const [arrived, go] = [gate(), gate()];
    const held = step(async (exchange) => {
      arrived.open();
      await go.promise;
      await serve(exchange);
    });
    server.plan(held, ...Array(5).fill(step(serve)));
    const first = await start();
    await arrived.promise;
    const second = await start();
    await second.told("waiting_for_other");
    go.open();
    const results = [await first.result(), await second.result()].map(({ submitted }) => submitted);
    expect(results).toEqual([
      { ...SUCCESS, replayed: false },
      { ...SUCCESS, replayed: false },
    ]);
    expect(seen.most).toBe(1);
    expectOnce(1);
  });

  it("go on with the same key where the one that sent is killed, and never before that", async () => {
    const { step, seen, kill } = counting();
    const [arrived, never] = [gate(), gate()];
    const lost = step(async ({ work }) => {
      await work();
      arrived.open();
      await never.promise;
    });
    server.plan(lost, ...Array(5).fill(step(serve)));
    const first = await start();
    await arrived.promise;
    const others = [await start(), await start({ resumes: true })];
    for (const other of others) await other.told("waiting_for_other");
    expect(server.seen).toHaveLength(1);
    kill(first);
    await first.kill();
    for (const other of others) expect((await other.result()).submitted).toMatchObject(SUCCESS);
    expect(seen.most).toBe(1);
    expectOnce(2);
  });

  it("six of them, from the first moment on", async () => {
    const { step, seen } = counting();
    server.plan(...Array(20).fill(step(serve)));
    const senders = await Promise.all(Array.from({ length: 6 }, () => start()));
    const results = await Promise.all(senders.map((sender) => sender.result()));
    expect(results.map(({ submitted }) => submitted)).toEqual(Array(6).fill({ ...SUCCESS, replayed: false }));
    expect(seen.most).toBe(1);
    expectOnce(1);
  });

  it("and keep two actions apart that ask for the same: two names, two keys, two executions", async () => {
    const senders = [await start(), await start({ name: "order 43" })];
    for (const sender of senders) expect((await sender.result()).submitted.kind).toBe("succeeded");
    expect(server.executed).toEqual([BODY, BODY]);
    expect(new Set(server.seen.map(({ key }) => key)).size).toBe(2);
  });
});
