import { createServer, type Socket } from "node:net";
import { KafkaGroups } from "./kafka-groups.ts";
import { KafkaLog, type StoredBatch, type StoredRecord } from "./kafka-log.ts";
import { array, bytes, int8, int16, int32, int64, string, WireReader } from "./kafka-wire.ts";

/**
 * One node that speaks enough of the Kafka protocol for kafkajs to produce and to consume, over a port of the loopback.
 * What it is not: replicated, durable, authenticated, or a coordinator of more than one member a group.
 */
export interface KafkaEndpoint {
  readonly port: number;
  /** What producers have sent, in the order of its arrival. */
  batches(): readonly StoredBatch[];
  records(topic: string): StoredRecord[];
  /** Offsets that groups have committed here, by `group topic partition`. */
  committed(): ReadonlyMap<string, bigint>;
  /** `acks` of every produce request. */
  readonly acks: readonly number[];
  /** From which offset each fetch of a topic read, in order. */
  fetchedFrom(topic: string): readonly number[];
  /** The next produce request is carried out; its answer is lost, and with it the connection. */
  loseNextProduceAnswer(): void;
  close(): Promise<void>;
}

export interface KafkaEndpointOptions {
  /** Of every topic. */
  readonly partitions?: number;
  /** Largest batch, as the broker's `message.max.bytes`. */
  readonly maxBytes?: number;
  /** The port that clients are told: of a proxy in front of it. */
  readonly advertised?: () => number;
  /** Default: any free one. */
  readonly port?: number;
  /** Appends a batch, where the node's own log in memory does not. Consumers read that log alone. */
  readonly append?: AppendBatch;
  /** The id of a producer that begins. Default: 1, 2, 3 … of this node. */
  readonly newProducer?: () => Promise<bigint>;
}

/** Appends a batch to a partition; what the producer is answered. */
export type AppendBatch = (
  topic: string,
  partition: number,
  bytes: Buffer,
) => Promise<{ readonly error: number; readonly baseOffset: bigint | number }>;

/** Requests by their key, each in the one version that is offered. */
const OFFERED = { 0: 3, 1: 4, 2: 1, 3: 4, 8: 2, 9: 1, 10: 0, 11: 0, 12: 0, 13: 0, 14: 0, 18: 0, 22: 0 };

interface Node {
  readonly log: KafkaLog;
  readonly groups: KafkaGroups;
  readonly acks: number[];
  readonly fetches: { readonly topic: string; readonly offset: number }[];
  readonly port: () => number;
  readonly append: AppendBatch;
  readonly newProducer: () => Promise<bigint>;
  losing: boolean;
}

/** The answer, later where the request waits; `null`: none, the connection is cut. */
type Handler = (node: Node, request: WireReader) => Buffer | Promise<Buffer | null>;

const handlers: Readonly<Record<number, Handler>> = {
  0: produce,
  1: fetch,
  2: listOffsets,
  3: metadata,
  8: ({ groups }, request) => groups.commit(request),
  9: ({ groups }, request) => groups.fetchOffsets(request),
  10: ({ port }) => Buffer.concat([int16(0), int32(0), string("127.0.0.1"), int32(port())]),
  11: ({ groups }, request) => groups.join(request),
  12: ({ groups }, request) => groups.heartbeat(request),
  13: () => int16(0),
  14: ({ groups }, request) => groups.sync(request),
  18: () => {
    const offered = array(Object.entries(OFFERED), ([key, version]) =>
      Buffer.concat([int16(Number(key)), int16(version), int16(version)]),
    );
    return Buffer.concat([int16(0), offered]);
  },
  22: async ({ newProducer }) => Buffer.concat([int32(0), int16(0), int64(await newProducer()), int16(0)]),
};

async function produce(node: Node, request: WireReader): Promise<Buffer | null> {
  request.string(); // transactional id
  node.acks.push(request.int16());
  request.int32(); // time-out
  const sent = request.array(() => ({
    topic: request.string() ?? "",
    batches: request.array(() => ({ partition: request.int32(), bytes: request.bytes() })),
  }));
  const topics = [];
  for (const { topic, batches } of sent) {
    const partitions = [];
    for (const { partition, bytes } of batches) {
      partitions.push({ partition, ...(await node.append(topic, partition, bytes)) });
    }
    topics.push({ topic, partitions });
  }
  if (node.losing) {
    node.losing = false;
    return null;
  }
  const answered = array(topics, ({ topic, partitions }) =>
    Buffer.concat([
      string(topic),
      array(partitions, ({ partition, error, baseOffset }) =>
        Buffer.concat([int32(partition), int16(error), int64(baseOffset), int64(-1)]),
      ),
    ]),
  );
  return Buffer.concat([answered, int32(0)]);
}

/** Answers at once where there is something, and after a moment where there is not, as `max_wait_time` has it. */
async function fetch({ log, fetches }: Node, request: WireReader): Promise<Buffer> {
  request.int32(); // replica
  const waitMs = request.int32();
  request.int32(); // least bytes
  request.int32(); // most bytes
  request.int8(); // isolation level
  const wanted = request.array(() => ({
    topic: request.string() ?? "",
    partitions: request.array(() => {
      const partition = request.int32();
      const offset = Number(request.int64());
      request.int32(); // most bytes
      return { partition, offset };
    }),
  }));
  for (const { topic, partitions } of wanted) fetches.push(...partitions.map(({ offset }) => ({ topic, offset })));
  const isSomething = () =>
    wanted.some(({ topic, partitions }) =>
      partitions.some(({ partition, offset }) => log.end(topic, partition) > offset),
    );
  for (let waited = 0; waited < Math.min(waitMs, 100) && !isSomething(); waited += 10) {
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  const answered = array(wanted, ({ topic, partitions }) =>
    Buffer.concat([
      string(topic),
      array(partitions, ({ partition, offset }) => {
        const end = int64(log.end(topic, partition));
        return Buffer.concat([
          int32(partition),
          int16(0),
          end,
          end,
          int32(0),
          bytes(log.fetch(topic, partition, offset)),
        ]);
      }),
    ]),
  );
  return Buffer.concat([int32(0), answered]);
}

function listOffsets({ log }: Node, request: WireReader): Buffer {
  request.int32(); // replica
  const topics = request.array(() => {
    const topic = request.string() ?? "";
    return { topic, partitions: request.array(() => ({ partition: request.int32(), at: request.int64() })) };
  });
  return array(topics, ({ topic, partitions }) =>
    Buffer.concat([
      string(topic),
      array(partitions, ({ partition, at }) => {
        const offset = at === -2n ? 0 : log.end(topic, partition);
        return Buffer.concat([int32(partition), int16(0), int64(-1), int64(offset)]);
      }),
    ]),
  );
}

function metadata({ log, port }: Node, request: WireReader): Buffer {
  const topics = request.array(() => request.string() ?? "");
  const partition = (index: number) =>
    Buffer.concat([int16(0), int32(index), int32(0), array([0], int32), array([0], int32)]);
  const described = array(topics, (topic) =>
    Buffer.concat([int16(0), string(topic), int8(0), array([...Array(log.partitions).keys()], partition)]),
  );
  const broker = Buffer.concat([int32(0), string("127.0.0.1"), int32(port()), string(null)]);
  return Buffer.concat([int32(0), int32(1), broker, string("endpoint"), int32(0), described]);
}

/** Starts one on a free port. */
export async function startKafkaEndpoint(options: KafkaEndpointOptions = {}): Promise<KafkaEndpoint> {
  const { partitions = 2, maxBytes = 65_536, advertised } = options;
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on("error", () => {});
    socket.on("close", () => sockets.delete(socket));
    serve(node, socket);
  });
  await new Promise<void>((done) => server.listen(options.port ?? 0, "127.0.0.1", done));
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("The endpoint has no port.");
  const { port } = address;
  const log = new KafkaLog(partitions, maxBytes);
  let producers = 0n;
  const node: Node = {
    log,
    append: options.append ?? (async (topic, partition, sent) => log.append(topic, partition, sent)),
    newProducer:
      options.newProducer ??
      (async () => {
        producers += 1n;
        return producers;
      }),
    groups: new KafkaGroups(),
    acks: [],
    fetches: [],
    port: advertised ?? (() => port),
    losing: false,
  };
  return {
    port,
    batches: () => log.batches,
    records: (topic) => log.records().filter((record) => record.topic === topic),
    committed: () => node.groups.offsets,
    acks: node.acks,
    fetchedFrom: (topic) => node.fetches.filter((one) => one.topic === topic).map(({ offset }) => offset),
    loseNextProduceAnswer() {
      node.losing = true;
    },
    async close() {
      for (const socket of sockets) socket.destroy();
      await new Promise((done) => server.close(done));
    },
  };
}

/** Answers the requests of one connection in their order, as a broker must. */
function serve(node: Node, socket: Socket): void {
  let buffered: Buffer = Buffer.alloc(0);
  let answered = Promise.resolve();
  socket.on("data", (chunk: Buffer) => {
    buffered = Buffer.concat([buffered, chunk]);
    while (buffered.length >= 4 && buffered.length >= 4 + buffered.readInt32BE(0)) {
      const size = buffered.readInt32BE(0);
      const request = new WireReader(buffered.subarray(4, 4 + size));
      buffered = buffered.subarray(4 + size);
      answered = answered.then(() => answer(node, request, socket));
    }
  });
}

async function answer(node: Node, request: WireReader, socket: Socket): Promise<void> {
  const key = request.int16();
  const version = request.int16();
  const correlation = request.int32();
  request.string(); // client id
  const handler = handlers[key];
  if (handler === undefined || OFFERED[key as keyof typeof OFFERED] !== version) {
    // kafkajs asks ApiVersions for its newest version first.
    const unsupported = Buffer.concat([int32(correlation), int16(35), int32(0)]);
    socket.write(bytes(unsupported));
    return;
  }
  const body = await handler(node, request);
  if (body === null) socket.destroy();
  else if (!socket.destroyed) socket.write(bytes(Buffer.concat([int32(correlation), body])));
}
