/** The clients' process: so many connections that are kept alive, each with one request under way. */
import { connect, type Socket } from "node:net";
import { PATH } from "../host.ts";
import { REQUEST_BODY } from "../invoice.ts";
import { answering } from "../program.ts";

/** Which keys are sent: new ones only, nine of ten that are known, known ones only, one for all; `none`: a GET without. */
export type KeyChoice = "fresh" | "mostly-replays" | "replays" | "hot" | "none";

/** One slice of load. Ends after `forMs`, or after `requests`, whichever is given. */
export interface LoadAsk {
  readonly port: number;
  readonly clients: number;
  readonly keys: KeyChoice;
  readonly forMs?: number;
  readonly requests?: number;
}

/** What a slice came to. */
export interface LoadAnswer {
  readonly requests: number;
  readonly tookMs: number;
}

/** Keys that the variants of a port know, for replays. */
const known = new Map<number, string[]>();
const connections = new Map<number, Connection[]>();
let made = 0;

/** One connection. A request is written in one piece; an answer is read by its Content-Length. */
interface Connection {
  exchange(request: string): Promise<string>;
}

async function open(port: number): Promise<Connection> {
  const socket = connect(port, "127.0.0.1");
  socket.setNoDelay(true);
  await new Promise<void>((resolve, reject) => socket.once("connect", resolve).once("error", reject));
  return {
    async exchange(request) {
      socket.write(request);
      return answerOf(socket);
    },
  };
}

function answerOf(socket: Socket): Promise<string> {
  return new Promise((resolve, reject) => {
    let missing = -1;
    let head = "";
    const end = (error?: Error) => {
      socket.removeListener("data", onData).removeListener("close", onClose);
      if (error === undefined) resolve(head);
      else reject(error);
    };
    const onClose = () => end(new Error("The server closed a connection."));
    const onData = (chunk: Buffer) => {
      if (missing >= 0) missing -= chunk.length;
      else {
        head += chunk.toString("latin1");
        const at = head.indexOf("\r\n\r\n");
        if (at >= 0) missing = lengthOf(head) - (head.length - at - 4);
      }
      if (missing === 0) end();
    };
    socket.on("data", onData).on("close", onClose);
  });
}

function lengthOf(head: string): number {
  const length = /\r\ncontent-length: *(\d+)/i.exec(head)?.[1];
  if (length === undefined) throw new Error(`An answer without Content-Length:\n${head.slice(0, 500)}`);
  return Number(length);
}

function requestOf(key: string | null): string {
  if (key === null) return `GET ${PATH}/1 HTTP/1.1\r\nHost: bench\r\n\r\n`;
  const head = [`POST ${PATH} HTTP/1.1`, "Host: bench", "Content-Type: application/json", `Idempotency-Key: ${key}`];
  return `${head.join("\r\n")}\r\nContent-Length: ${REQUEST_BODY.length}\r\n\r\n${REQUEST_BODY}`;
}

function keyOf(choice: KeyChoice, port: number, n: number): string | null {
  const keys = known.get(port) ?? [];
  const old = () => keys[n % keys.length] ?? "";
  const fresh = () => `key-${process.pid}-${port}-${made++}`;
  switch (choice) {
    case "none":
      return null;
    case "hot":
      return `hot-${process.pid}-${port}`;
    case "replays":
      return old();
    case "mostly-replays":
      return n % 10 === 0 ? fresh() : old();
    case "fresh":
      return fresh();
  }
}

async function exchange(connection: Connection, key: string | null): Promise<void> {
  const head = await connection.exchange(requestOf(key));
  if (!head.startsWith("HTTP/1.1 201")) throw new Error(`An answer that is not the handler's:\n${head.slice(0, 500)}`);
}

/** How many keys replays are spread over. */
const KNOWN = 200;

/** Sends the first requests of keys that are known from then on. */
async function prepare(port: number, over: readonly Connection[]): Promise<void> {
  if (known.has(port)) return;
  const keys = Array.from({ length: KNOWN }, (_, n) => `known-${process.pid}-${port}-${n}`);
  const waiting = [...keys];
  const client = async (connection: Connection) => {
    for (let key = waiting.pop(); key !== undefined; key = waiting.pop()) await exchange(connection, key);
  };
  await Promise.all(over.map(client));
  known.set(port, keys);
}

/** As many connections as there are clients, kept from slice to slice. */
async function connectionsTo(port: number, clients: number): Promise<readonly Connection[]> {
  const opened = connections.get(port) ?? [];
  connections.set(port, opened);
  while (opened.length < clients) opened.push(await open(port));
  return opened.slice(0, clients);
}

async function load({ port, clients, keys, forMs, requests }: LoadAsk): Promise<LoadAnswer> {
  const chosen = await connectionsTo(port, clients);
  if (keys === "replays" || keys === "mostly-replays") await prepare(port, chosen);
  const limit = requests ?? Infinity;
  let sent = 0;
  const beganAt = performance.now();
  const goesOn = () => sent < limit && (forMs === undefined || performance.now() - beganAt < forMs);
  const client = async (connection: Connection) => {
    while (goesOn()) await exchange(connection, keyOf(keys, port, sent++));
  };
  await Promise.all(chosen.map(client));
  return { requests: sent, tookMs: performance.now() - beganAt };
}

answering<LoadAsk>(load);
