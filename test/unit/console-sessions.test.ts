import { describe, expect, it } from "vitest";
import type { Asked } from "../../src/console/exchange.ts";
import { createSessions, createSignInGate } from "../../src/console/sessions.ts";

const ADA = { name: "ada", tenant: null, readOnly: false, mayReveal: true };
const MINUTE = 60_000;

const asked = (cookie: string) =>
  ({ header: (name: string) => (name === "cookie" ? cookie : null), secure: false }) as unknown as Asked;

function world(limits = {}) {
  const clock = { now: 0 };
  const sessions = createSessions("/console", limits, () => clock.now);
  const open = (name = "ada", secure = false) => {
    const { cookie, who } = sessions.open({ ...ADA, name }, secure);
    return { cookie: cookie.split(";")[0] ?? "", line: cookie, who };
  };
  return { clock, sessions, open };
}

describe("a session of the console", () => {
  it("ends when nobody did anything for a quarter of an hour; what a page asks by itself does not count", () => {
    const { clock, sessions, open } = world();
    const { cookie, who } = open();
    clock.now = 14 * MINUTE;
    expect(sessions.of(asked(cookie), true)?.operator).toEqual(ADA);
    clock.now = 28 * MINUTE;
    expect(sessions.of(asked(cookie), false)?.operator).toEqual(ADA);
    expect(sessions.isOver(who.session)).toBe(false);
    clock.now = 29 * MINUTE;
    expect(sessions.isOver(who.session)).toBe(true);
    expect(sessions.of(asked(cookie), true)).toBeNull();
  });

  it("ends after eight hours whatever is done", () => {
    const { clock, sessions, open } = world();
    const { cookie } = open();
    for (clock.now = 0; clock.now < 480 * MINUTE; clock.now += 10 * MINUTE) {
      expect(sessions.of(asked(cookie), true)).not.toBeNull();
    }
    expect(sessions.of(asked(cookie), true)).toBeNull();
  });

  it("is one of a few of its user: the one that was idle for longest ends, and only of that user", () => {
    const { clock, sessions, open } = world({ perUser: 2 });
    const first = open();
    clock.now = 1;
    const second = open();
    const other = open("eve");
    clock.now = 2;
    sessions.of(asked(first.cookie), true);
    clock.now = 3;
    open();
    expect(sessions.of(asked(first.cookie), false)).not.toBeNull();
    expect(sessions.of(asked(second.cookie), false)).toBeNull();
    expect(sessions.of(asked(other.cookie), false)).not.toBeNull();
  });

  it("is not believed where two cookies claim it, and is over for good once it was ended", () => {
    const { sessions, open } = world();
    const [one, two] = [open(), open()];
    expect(one.who.csrf).not.toBe(two.who.csrf);
    expect(sessions.of(asked(`${one.cookie}; ${two.cookie}`), true)).toBeNull();
    expect(sessions.of(asked(`other=1; ${one.cookie}`), true)).not.toBeNull();
    expect(sessions.end(asked(one.cookie))).toBe(
      "oncekey_console=; Max-Age=0; Path=/console; HttpOnly; SameSite=Strict",
    );
    expect(sessions.of(asked(one.cookie), true)).toBeNull();
    expect(sessions.of(asked(two.cookie), true)).not.toBeNull();
  });

  it("has a cookie that TLS keeps to itself", () => {
    expect(world().open("ada", true).line).toMatch(/; HttpOnly; SameSite=Strict; Secure$/);
  });
});

describe("signing in", () => {
  const refused = expect.objectContaining({ status: 429 });

  it("costs twice the pause after each failure, once there were a few; a success forgets them", () => {
    const clock = { now: 0 };
    const gate = createSignInGate(() => clock.now);
    const fail = () => gate.enter("ada")(false);
    for (let n = 0; n < 5; n++) fail();
    for (const pauseMs of [1_000, 2_000, 4_000]) {
      clock.now += pauseMs - 1;
      expect(fail).toThrow(refused);
      clock.now += 1;
      fail();
    }
    gate.enter("eve")(true);
    clock.now += 8_000;
    gate.enter("ada")(true);
    fail();
    fail();
  });

  it("is tried by few at once, whoever they are", () => {
    const gate = createSignInGate(() => 0);
    const [first] = [gate.enter("a"), gate.enter("b")];
    expect(() => gate.enter("c")).toThrow(refused);
    first(true);
    gate.enter("c");
  });

  it("never pauses for more than a minute", () => {
    const clock = { now: 0 };
    const gate = createSignInGate(() => clock.now);
    for (let n = 0; n < 40; n++) {
      gate.enter("ada")(false);
      clock.now += 60_000;
    }
  });
});
