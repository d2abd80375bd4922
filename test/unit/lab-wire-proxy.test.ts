import { connect, createServer, type Socket } from "node:net";
import { afterEach, describe, expect, it } from "vitest";
import { type Act, type Strike, type WireProxy, wireProxy } from "../../lab/support/wire-proxy.ts";

const ends: (() => Promise<unknown>)[] = [];

afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end();
});

/** A server that answers `<text>!` to each text, and remembers what arrived and whether its peer said goodbye. */
async function echo() {
  const seen = { text: "", ended: false };
  const sockets = new Set<Socket>();
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    sockets.add(socket);
    socket.on("error", () => {});
    socket.on("data", (bytes) => {
      seen.text += bytes;
      socket.write(`${bytes}!`);
    });
    socket.on("end", () => {
      seen.ended = true;
    });
  });
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  ends.push(async () => {
    for (const socket of sockets) socket.destroy();
    await new Promise((done) => server.close(done));
  });
  return { port: (server.address() as { port: number }).port, seen };
}

async function opened(allowHalfOpen = false) {
  const server = await echo();
  const proxy = await wireProxy([server.port]);
  ends.push(() => proxy.close());
  const socket = connect({ port: proxy.port, host: "127.0.0.1", allowHalfOpen });
  ends.push(async () => socket.destroy());
  socket.on("error", () => {});
  let heard = "";
  socket.on("data", (bytes) => {
    heard += bytes;
  });
  const closed = new Promise<string>((done) => socket.once("close", () => done(heard)));
  const halfClosed = new Promise<string>((done) => socket.once("end", () => done(heard)));
  const said = (text: string) =>
    new Promise<void>((done) => {
      const look = () => (heard.includes(text) ? done() : void socket.once("data", look));
      look();
    });
  return { proxy, socket, seen: server.seen, closed, halfClosed, said, heard: () => heard };
}

const once = (proxy: WireProxy, strike: Strike) => proxy.strike(strike, { times: 1, limitMs: 5_000 });
const toServer = (act: Act): Strike => ({ toward: "server", act });

describe("wireProxy", () => {
  it("passes bytes on both ways, and knows who waits for an answer", async () => {
    const { proxy, socket, said, seen } = await opened();
    socket.write("one");
    await said("one!");
    expect(seen.text).toBe("one");
    expect(proxy.inFlight()).toBe(0);
  });

  it("cuts before the request: nothing arrives", async () => {
    const { proxy, socket, closed, seen } = await opened();
    const met = once(proxy, toServer("cut_before"));
    socket.write("one");
    expect(await closed).toBe("");
    expect([await met, seen.text]).toEqual([1, ""]);
  });

  it("cuts in the middle of the request: half of it arrives", async () => {
    const { proxy, socket, closed, seen } = await opened();
    void once(proxy, toServer("cut_midway"));
    socket.write("abcdef");
    await closed;
    await expect.poll(() => seen.text).toBe("abc");
  });

  it("cuts the answer: the request is served, nobody hears of it", async () => {
    const { proxy, socket, closed, seen } = await opened();
    void once(proxy, { ...toServer("cut_answer"), matches: (bytes) => bytes.includes("COMMIT") });
    socket.write("COMMIT");
    expect(await closed).toBe("");
    expect(seen.text).toBe("COMMIT");
  });

  it("cuts in the middle of the answer", async () => {
    const { proxy, socket, closed } = await opened();
    void once(proxy, { toward: "client", act: "cut_midway" });
    socket.write("abc");
    expect(await closed).toBe("ab");
  });

  it("closes one direction, and the other stays open", async () => {
    const { proxy, socket, said, seen } = await opened(true);
    void once(proxy, toServer("half_close"));
    socket.write("one");
    await said("one!");
    await expect.poll(() => seen.ended).toBe(true);
    expect(socket.destroyed).toBe(false);
  });

  it("closes the answering direction after a part of the answer", async () => {
    const { proxy, socket, halfClosed } = await opened(true);
    void once(proxy, { toward: "client", act: "half_close" });
    socket.write("one");
    expect(await halfClosed).toBe("one!");
  });

  it("delays a piece, and keeps the order of what follows", async () => {
    const { proxy, socket, said, seen } = await opened();
    const met = once(proxy, toServer({ delayMs: 30 }));
    socket.write("one");
    expect(await met).toBe(1);
    expect(seen.text).toBe("");
    socket.write("two");
    await said("two!");
    expect(seen.text).toBe("onetwo");
  });

  it("strikes as often as it was told, and says how often it did at the end of the limit", async () => {
    const { proxy, socket, said } = await opened();
    const met = proxy.strike({ ...toServer({ delayMs: 1 }) }, { times: 3, limitMs: 100 });
    socket.write("one");
    await said("one!");
    expect(await met).toBe(1);
  });

  it("gives connections to the servers in turn", async () => {
    const [a, b] = [await echo(), await echo()];
    const proxy = await wireProxy([a.port, b.port]);
    ends.push(() => proxy.close());
    for (const text of ["first", "second"]) {
      const socket = connect(proxy.port, "127.0.0.1", () => void socket.write(text));
      await new Promise<void>((done) => socket.once("data", () => done()));
      socket.destroy();
    }
    expect([a.seen.text, b.seen.text]).toEqual(["first", "second"]);
  });

  it("breaks what nobody listens for", async () => {
    const unused = await echo();
    await ends.pop()?.();
    const proxy = await wireProxy([unused.port]);
    ends.push(() => proxy.close());
    const socket = connect(proxy.port, "127.0.0.1");
    socket.on("error", () => {});
    await new Promise<void>((done) => socket.once("close", () => done()));
  });
});
