import { connect, type Socket } from "node:net";
import { type Field, type FixMessage, fixTime, readMessage, splitMessages, tag, writeMessage } from "./message.ts";

/** The other side of a session, as a program of the counterparty has it: it keeps what it sent, to send it again. */
export interface Initiator {
  /** Sends a message under the next number, and keeps it. Gives that number. */
  send(...fields: Field[]): number;
  /** Sends one again under its own number, marked 43=Y; or, for trials, not marked. */
  sendAgain(sequence: number, marked?: boolean): void;
  /** Keeps a message as sent whose connection was gone. */
  lose(...fields: Field[]): number;
  /** The next message that has not been looked at. Rejects when the connection ends before it comes. */
  next(): Promise<FixMessage>;
  /** Resolves when the other side has ended the connection. */
  readonly ended: Promise<void>;
  hangUp(): void;
}

/** What a counterparty remembers from one connection to the next. */
export interface Counting {
  next: number;
  readonly sent: Map<number, readonly Field[]>;
}

/** Begins to count, for a trading day. */
export function newCounting(): Counting {
  return { next: 1, sent: new Map() };
}

/** Connects; the Logon is the caller's to send. */
export async function initiate(port: number, us: string, them: string, counting: Counting): Promise<Initiator> {
  const socket = connect(port, "127.0.0.1");
  await new Promise<void>((resolve, reject) => socket.once("connect", resolve).once("error", reject));
  const mail = received(socket);
  const write = (sequence: number, fields: readonly Field[], marks: readonly Field[]) => {
    const [type = [tag.msgType, "0"] as const, ...rest] = fields;
    const head: Field[] = [type, [tag.senderCompID, us], [tag.targetCompID, them], [tag.msgSeqNum, String(sequence)]];
    const time: Field = [tag.sendingTime, fixTime(new Date())];
    if (!socket.destroyed) socket.write(writeMessage([...head, ...marks, time, ...rest]), "latin1");
  };
  const keep = (fields: readonly Field[]) => {
    const sequence = counting.next++;
    counting.sent.set(sequence, fields);
    return sequence;
  };
  return {
    ...mail,
    send(...fields) {
      const sequence = keep(fields);
      write(sequence, fields, []);
      return sequence;
    },
    sendAgain(sequence, marked = true) {
      const marks: Field[] = [
        [tag.possDupFlag, "Y"],
        [tag.origSendingTime, fixTime(new Date())],
      ];
      write(sequence, counting.sent.get(sequence) ?? [], marked ? marks : []);
    },
    lose: (...fields) => keep(fields),
    hangUp: () => void socket.destroy(),
  };
}

function received(socket: Socket): Pick<Initiator, "next" | "ended"> {
  const messages: FixMessage[] = [];
  const waiting: (() => void)[] = [];
  let arrived = "";
  let isOver = false;
  const wake = () => {
    for (const look of waiting.splice(0)) look();
  };
  socket.on("error", () => {});
  const ended = new Promise<void>((resolve) =>
    socket.on("close", () => {
      isOver = true;
      wake();
      resolve();
    }),
  );
  socket.on("data", (chunk) => {
    const { whole, rest } = splitMessages(arrived + chunk.toString("latin1"));
    arrived = rest;
    for (const text of whole) {
      const message = readMessage(text);
      if (message !== null) messages.push(message);
    }
    wake();
  });
  return {
    ended,
    async next() {
      for (;;) {
        const message = messages.shift();
        if (message !== undefined) return message;
        if (isOver) throw new Error("The connection ended before an answer came.");
        await new Promise<void>((resolve) => waiting.push(resolve));
      }
    },
  };
}
