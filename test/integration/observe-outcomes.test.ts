import { StoreFailure } from "oncekey";
import { faultyStore } from "oncekey/testing";
import { describe, expect, it } from "vitest";
import { gate } from "../support/gate.ts";
import { passTime, query } from "../support/postgres.ts";
import { observedWorld } from "./support/observed.ts";

const request = (operation: string, result: string, status: number | "" = "") =>
  `requests{operation="${operation}",result="${result}",status="${status}"}`;
const completion = (operation: string, by = "request", state = "succeeded") =>
  `completions{operation="${operation}",by="${by}",state="${state}"}`;
const claims = (operation: string) => `claims{operation="${operation}"}`;
const call = (event: string) => `calls{operation="charges",event="${event}"}`;
const recovery = (operation: string, reason: string) => `needs_recovery{operation="${operation}",reason="${reason}"}`;
const sent = (topic: string) => `messages{topic="${topic}",event="sent"}`;

describe("the counters of a transaction", () => {
  it("tell completions, refusals of the operation, replays, mismatches and throws apart", async () => {
    const world = await observedWorld();
    const { order } = await world.shop();
    expect(await world.counted(() => order("a", "sends"))).toEqual({
      [claims("orders")]: 1,
      [completion("orders")]: 1,
      [request("orders", "completed", 201)]: 1,
      [sent("order.created")]: 1,
    });
    expect(await world.counted(() => order("a", "sends"))).toEqual({ [request("orders", "replayed", 201)]: 1 });
    expect(await world.counted(() => order("a", "throws"))).toEqual({ [request("orders", "mismatch")]: 1 });
    expect(await world.counted(() => order("b", "is refused"))).toEqual({
      [claims("orders")]: 1,
      [completion("orders", "request", "failed")]: 1,
      [request("orders", "completed", 422)]: 1,
    });
    expect(await world.counted(() => order("c", "throws").catch(() => {}))).toEqual({
      [claims("orders")]: 1,
      [request("orders", "threw")]: 1,
    });
  });

  it("tell a duplicate that waits from one that may not", async () => {
    const world = await observedWorld();
    const { order, held } = await world.shop();
    const [begun, end] = [gate(), gate()];
    held.waiting = begun.open;
    held.until = end.promise;
    const counts = await world.counted(async () => {
      const first = order("a", "waits");
      await begun.promise;
      expect((await order("a", "waits")).kind).toBe("busy");
      const waiting = order("a", "waits", 60_000);
      end.open();
      expect([(await first).kind, (await waiting).kind]).toEqual(["completed", "replayed"]);
    });
    expect(counts).toEqual({
      [claims("orders")]: 1,
      [completion("orders")]: 1,
      [request("orders", "completed", 201)]: 1,
      [request("orders", "busy")]: 1,
      [request("orders", "replayed", 201)]: 1,
    });
    const waited = world.events.filter(({ kind }) => kind === "waited");
    expect(waited).toHaveLength(1);
  });

  it("tell what the store did to it", async () => {
    const world = await observedWorld();
    const faulty = async (fault: "unavailable" | "contention" | "commit_unknown_undone", uses: number) => {
      const method = fault === "unavailable" ? "read" : "transaction";
      const { store } = faultyStore(world.base, { script: Array.from({ length: uses }, () => ({ method, fault })) });
      return (await world.shop({ store })).order;
    };
    const unavailable = await faulty("unavailable", 1);
    expect(await world.counted(() => unavailable("a"))).toEqual({ [request("orders", "store_unavailable")]: 1 });
    const contended = await faulty("contention", 50);
    expect(await world.counted(() => contended("b"))).toEqual({
      [claims("orders")]: 1,
      [request("orders", "contention")]: 1,
    });
    const lost = await faulty("commit_unknown_undone", 1);
    expect(await world.counted(() => lost("c"))).toEqual({
      [claims("orders")]: 1,
      [request("orders", "commit_unknown")]: 1,
    });
  });

  it("tell an outcome that is gone, and an entry that a newer release wrote", async () => {
    const world = await observedWorld();
    const { order } = await world.shop({ maxStoredBodyBytes: 1 });
    await order("a");
    expect(await world.counted(() => order("a"))).toEqual({ [request("orders", "gone")]: 1 });
    await query(world.url, "UPDATE oncekey.entry SET fingerprint = set_byte(fingerprint, 0, 250)");
    expect(await world.counted(() => order("a"))).toEqual({ [request("orders", "version_unknown")]: 1 });
  });
});

describe("the counters of phases", () => {
  it("tell phases, calls and the repetition of a call", async () => {
    const world = await observedWorld();
    const { charge, psp } = await world.shop();
    psp.fails = 1;
    const all = {
      [claims("charges")]: 1,
      [call("started")]: 2,
      [call("failed")]: 1,
      [call("repeated")]: 1,
      [call("answered")]: 2,
      [completion("charges")]: 1,
      [request("charges", "completed", 201)]: 1,
      [sent("charge.settled")]: 1,
    };
    expect(await world.counted(() => charge("a"))).toEqual(all);
    expect(world.metrics.text()).toContain('oncekey_phase_duration_seconds_count{operation="charges"} 1');
    expect(world.metrics.text()).toContain(
      'oncekey_request_duration_seconds_count{operation="charges",result="completed"} 1',
    );
  });

  it("tell a resume by a retry and by the sweeper, which also purges", async () => {
    const world = await observedWorld();
    const { charge, sweeper } = await world.shop();
    await charge("a", "throws").catch(() => {});
    expect(await world.counted(() => charge("a", "throws").catch(() => {}))).toEqual({
      'resumes{operation="charges",by="request"}': 1,
      [request("charges", "threw")]: 1,
    });
    await passTime(world.url, 3_600_000);
    expect(await world.counted(() => sweeper.runOnce())).toEqual({
      'resumes{operation="charges",by="sweeper"}': 1,
      'sweeps{operation="charges",as="failed"}': 1,
    });
    const passes = world.events.filter(({ kind }) => kind === "purged");
    expect(passes.map((pass) => "what" in pass && pass.what).sort()).toEqual(["deliveries", "entries"]);
    const { order } = await world.shop();
    await order("kept");
    await passTime(world.url, 30 * 86_400_000);
    expect(await world.counted(() => sweeper.runOnce())).toMatchObject({ 'purged{what="entries"}': 1 });
  });

  it("tell a call whose effect is found, and one that nobody can settle", async () => {
    const world = await observedWorld();
    const { charge, psp } = await world.shop();
    const failsAtCapture = () => {
      // The first call answers, the second one fails and is looked up.
      let sends = 0;
      Object.defineProperty(psp, "fails", { configurable: true, get: () => (++sends === 2 ? 1 : 0), set: () => {} });
    };
    failsAtCapture();
    psp.finds = true;
    const calls = { [call("started")]: 2, [call("answered")]: 1, [call("failed")]: 1 };
    expect(await world.counted(() => charge("a"))).toEqual({
      ...calls,
      [call("found")]: 1,
      [claims("charges")]: 1,
      [completion("charges")]: 1,
      [request("charges", "completed", 201)]: 1,
      [sent("charge.settled")]: 1,
    });
    failsAtCapture();
    psp.finds = false;
    expect(await world.counted(() => charge("b"))).toEqual({
      ...calls,
      [claims("charges")]: 1,
      [recovery("charges", "call_found_twice")]: 1,
      [request("charges", "outcome_unknown")]: 1,
    });
  });

  it("tell a lost lease", async () => {
    const world = await observedWorld();
    const taken = { ...world.base, renew: async () => false };
    const { charge, held } = await world.shop({ leaseMs: 300, store: Object.assign(Object.create(world.base), taken) });
    const end = gate();
    held.until = end.promise;
    expect(await world.counted(() => charge("a", "waits"))).toEqual({
      [claims("charges")]: 1,
      'lease_losses{operation="charges",by="request"}': 1,
      [request("charges", "lease_lost")]: 1,
    });
    end.open();
  });
});

describe("the counters of captured handlers", () => {
  it("tell what an answer meant for its key", async () => {
    const world = await observedWorld();
    const { refund, sweeper } = await world.shop();
    const claimed = { [claims("refunds")]: 1 };
    expect(await world.counted(() => refund("a"))).toEqual({
      ...claimed,
      [completion("refunds")]: 1,
      [request("refunds", "completed", 201)]: 1,
    });
    expect(await world.counted(() => refund("b", 429))).toEqual({
      ...claimed,
      [request("refunds", "not_begun", 429)]: 1,
    });
    expect(await world.counted(() => refund("c", 500))).toEqual({
      ...claimed,
      [recovery("refunds", "handler_failed")]: 1,
      [request("refunds", "provisional", 500)]: 1,
    });
    await passTime(world.url, 3_600_000);
    expect(await world.counted(() => sweeper.runOnce())).toEqual({
      'reconciliations{operation="refunds",found="happened"}': 1,
      'sweeps{operation="refunds",as="reconciled"}': 1,
    });
    expect(await world.counted(() => refund("c", 500))).toEqual({ [request("refunds", "replayed", 201)]: 1 });
  });

  it("tell a retry that comes too late", async () => {
    const world = await observedWorld();
    const { refund } = await world.shop({ refuseLateRetries: true });
    const longAgo = { "idempotency-first-sent": "Wed, 01 Jan 2020 00:00:00 GMT" };
    expect(await world.counted(() => refund("a", 201, longAgo))).toEqual({ [request("refunds", "too_late")]: 1 });
  });

  it("tell refusals at the door, and runs without protection", async () => {
    const world = await observedWorld();
    const { refund } = await world.shop();
    expect(await world.counted(() => refund(null))).toEqual({
      'refusals{operation="refunds",code="idempotency_key_missing"}': 1,
      [request("refunds", "refused")]: 1,
    });
    const down = Object.create(world.base, {
      read: { value: () => Promise.reject(new StoreFailure("unavailable", "down")) },
    });
    const protecting = await world.shop({ store: down });
    expect(await world.counted(() => protecting.refund("z"))).toEqual({
      [request("refunds", "store_unavailable")]: 1,
    });
    const running = await world.shop({ store: down }, "run");
    expect(await world.counted(() => running.refund("z"))).toEqual({ [request("refunds", "unprotected", 201)]: 1 });
  });
});
