import { Kafka, logLevel, type Producer } from "kafkajs";
import { createOncekey } from "oncekey";
import { fromPg } from "oncekey/drivers/pg";
import type { KafkaBatchHead } from "oncekey/inbox";
import { postgresStore } from "oncekey/postgres";
import type pg from "pg";
import { beforeAll, describe, expect, it } from "vitest";
import { readBatch } from "../support/brokers/kafka-batch.ts";
import { startKafkaEndpoint } from "../support/brokers/kafka-endpoint.ts";
import { atEnd, createDatabase, sharedServer, testPool } from "../support/postgres.ts";
import { startKafkaWorker } from "./support/kafka-append-workers.ts";
import { appendToTable, LOG_TABLES, newProducerId, tableAppend } from "./support/kafka-log-table.ts";
import { COMMIT, lossyProxy } from "./support/lossy-proxy.ts";

let url: string;
let pool: pg.Pool;

beforeAll(async () => {
  process.env.KAFKAJS_NO_PARTITIONER_WARNING = "1";
  url = (await createDatabase()).url;
  pool = testPool(url);
  await pool.query(LOG_TABLES);
});

let topics = 0;

/** A topic that no other test has. */
function newTopic(): string {
  topics += 1;
  return `orders-${topics}`;
}

async function instance(database: pg.Pool = pool) {
  const once = createOncekey({ store: postgresStore(fromPg(database)), onError: () => {} });
  await once.start();
  return once;
}

/** kafkajs against an endpoint of this process, whose log is the database. */
async function endpointWorld(database: pg.Pool = pool) {
  const once = await instance(database);
  const newProducer = () => newProducerId(pool);
  const endpoint = await startKafkaEndpoint({ partitions: 1, append: tableAppend(once), newProducer });
  atEnd(() => endpoint.close());
  return { once, endpoint, producer: await producerAt(endpoint.port) };
}

async function producerAt(port: number): Promise<Producer> {
  const retry = { retries: 20, initialRetryTime: 50, maxRetryTime: 200 };
  const kafka = new Kafka({ clientId: "shop", brokers: [`127.0.0.1:${port}`], logLevel: logLevel.NOTHING, retry });
  const producer = kafka.producer({ idempotent: true, retry });
  await producer.connect();
  atEnd(() => producer.disconnect());
  return producer;
}

/** Sends values as one batch; the offset that the producer is told. */
async function send(producer: Producer, topic: string, ...values: string[]): Promise<string | undefined> {
  const [told] = await producer.send({ topic, messages: values.map((value) => ({ value })) });
  return told?.baseOffset;
}

/** What the log of a topic holds, in its order. */
async function log(topic: string): Promise<{ base: string; values: string[] }[]> {
  const found = await pool.query("SELECT base, bytes FROM log_batch WHERE topic = $1 ORDER BY base", [topic]);
  return found.rows.map(({ base, bytes }) => ({ base, values: readBatch(bytes).records.map(({ value }) => value) }));
}

/** The head of the batches of a topic's one producer, as the log has them. */
async function headsOf(topic: string): Promise<KafkaBatchHead[]> {
  const { rows } = await pool.query("SELECT bytes FROM log_batch WHERE topic = $1 ORDER BY base", [topic]);
  return rows.map(({ bytes }) => {
    const { producerId, producerEpoch, baseSequence, records } = readBatch(bytes);
    return { producerId, producerEpoch, baseSequence, records: records.length };
  });
}

const producerRows = (topic: string, change: string) =>
  pool.query(`${change} WHERE source = $1`, [`${topic}-0`]).then(({ rowCount }) => expect(rowCount).toBe(1));

describe("kafkajs as an idempotent producer", () => {
  it("whose acknowledgements are lost sends again, and has appended once", async () => {
    const { endpoint, producer } = await endpointWorld();
    const topic = newTopic();
    expect(await send(producer, topic, "a", "b")).toBe("0");
    endpoint.loseNextProduceAnswer();
    expect(await send(producer, topic, "c")).toBe("2");
    endpoint.loseNextProduceAnswer();
    expect(await send(producer, topic, "d", "e")).toBe("3");
    expect(endpoint.acks).toHaveLength(5);
    expect(await log(topic)).toEqual([
      { base: "0", values: ["a", "b"] },
      { base: "2", values: ["c"] },
      { base: "3", values: ["d", "e"] },
    ]);
  });

  it.each([
    ["before its commit", "move_producer:after", 0],
    ["between its commit and its answer", "arrival:committed", 1],
  ])("goes on with the next process of an endpoint that was killed %s", async (_, point, appended) => {
    const topic = newTopic();
    const first = await startKafkaWorker(url);
    const producer = await producerAt(first.port);
    expect(await send(producer, topic, "a")).toBe("0");
    await first.dieAt(point);
    const sending = send(producer, topic, "b", "c");
    expect(await first.died).toBe("SIGKILL");
    expect(await log(topic)).toHaveLength(1 + appended);
    await startKafkaWorker(url, first.port);
    expect(await sending).toBe("1");
    expect(await send(producer, topic, "d")).toBe("3");
    expect((await log(topic)).map(({ values }) => values.join(""))).toEqual(["a", "bc", "d"]);
  });

  it("is answered as if nothing had happened where the answer to COMMIT was lost", async () => {
    const proxy = await lossyProxy((await sharedServer()).port);
    atEnd(() => proxy.close());
    const { producer } = await endpointWorld(testPool(proxy.urlOf(url)));
    const topic = newTopic();
    await send(producer, topic, "a");
    const loss = proxy.loseNext(COMMIT, "answer");
    expect(await send(producer, topic, "b")).toBe("1");
    await loss.met;
    expect((await log(topic)).map(({ values }) => values)).toEqual([["a"], ["b"]]);
  });

  it.each([
    ["a number is missing", "UPDATE oncekey.producer SET sequence = sequence - 1"],
    ["nothing is known of it", "DELETE FROM oncekey.producer"],
  ])("is refused for good where %s, as from an older copy of the database", async (_, change) => {
    const { producer, endpoint } = await endpointWorld();
    const topic = newTopic();
    for (const value of ["a", "b"]) await send(producer, topic, value);
    await producerRows(topic, change);
    const refused = await send(producer, topic, "c").catch((error: unknown) => error);
    expect(refused).toMatchObject({ type: "OUT_OF_ORDER_SEQUENCE_NUMBER", code: 45, retriable: false });
    expect(endpoint.acks).toHaveLength(3);
    expect(await log(topic)).toHaveLength(2);
  });

  it("is refused for good once a newer instance of it has taken over", async () => {
    const { producer, once } = await endpointWorld();
    const topic = newTopic();
    await send(producer, topic, "a");
    const [head] = await headsOf(topic);
    const newer = { ...(head as KafkaBatchHead), producerEpoch: 1, baseSequence: 0 };
    const bytes = (await pool.query("SELECT bytes FROM log_batch WHERE topic = $1", [topic])).rows[0].bytes;
    expect((await appendToTable(once, { topic, partition: 0 }, newer, bytes)).errorCode).toBe(0);
    const refused = await send(producer, topic, "b").catch((error: unknown) => error);
    expect(refused).toMatchObject({ type: "INVALID_PRODUCER_EPOCH", code: 47, retriable: false });
    expect(await log(topic)).toHaveLength(2);
  });
});

describe("the last five batches of a producer", () => {
  it("are answered with their own offsets, an older one is refused, and one row remembers them", async () => {
    const { producer, once } = await endpointWorld();
    const topic = newTopic();
    for (const value of ["a", "b", "c", "d", "e", "f"]) await send(producer, topic, value, value);
    const heads = await headsOf(topic);
    const place = { topic, partition: 0 };
    const [oldest, ...others] = await Promise.all(heads.map((head) => appendToTable(once, place, head)));
    expect(oldest).toMatchObject({ errorCode: 45, baseOffset: -1n, result: { kind: "out_of_order", expected: 12n } });
    expect(others.map(({ errorCode, baseOffset }) => [errorCode, baseOffset])).toEqual(
      [2n, 4n, 6n, 8n, 10n].map((offset) => [0, offset]),
    );
    expect(await log(topic)).toHaveLength(6);
    const rows = await pool.query("SELECT 1 FROM oncekey.inbox WHERE source = $1", [`${topic}-0`]);
    expect(rows.rowCount).toBe(1);
  });

  it("that were erased are refused, and the next one is taken in", async () => {
    const { producer, once } = await endpointWorld();
    const topic = newTopic();
    await send(producer, topic, "a");
    const [head] = (await headsOf(topic)) as [KafkaBatchHead];
    const erased = await pool.query("UPDATE oncekey.inbox SET value = NULL WHERE source = $1", [`${topic}-0`]);
    expect(erased.rowCount).toBe(1);
    expect((await appendToTable(once, { topic, partition: 0 }, head)).errorCode).toBe(45);
    expect(await send(producer, topic, "b")).toBe("1");
    expect(await log(topic)).toHaveLength(2);
  });

  it("are known on both sides of 2^31 - 1", async () => {
    const once = await instance();
    const topic = newTopic();
    const highest = 2 ** 31 - 1;
    const append = (baseSequence: number, records: number) =>
      appendToTable(
        once,
        { topic, partition: 0 },
        { producerId: 1n, producerEpoch: 0, baseSequence, records },
        Buffer.from([1]),
      ).then(({ errorCode, baseOffset }) => [errorCode, baseOffset]);
    const most = 100_000_000;
    let next = 0;
    for (; next + most <= highest - 1; next += most) expect((await append(next, most))[0]).toBe(0);
    await append(next, highest - 1 - next);
    const offset = BigInt(highest - 1);
    expect(await append(highest - 1, 3)).toEqual([0, offset]);
    expect(await append(1, 1)).toEqual([0, offset + 3n]);
    expect(await append(highest - 1, 3)).toEqual([0, offset]);
    expect(await append(1, 1)).toEqual([0, offset + 3n]);
    expect(await append(0, most)).toEqual([45, -1n]);
    expect(await append(2, 1)).toEqual([0, offset + 4n]);
  });

  it("are appended once where two endpoints get copies of them at the same moment", async () => {
    const topic = newTopic();
    const endpoints = [await instance(), await instance(testPool(url))];
    for (const [index, baseSequence] of [0, 2, 4].entries()) {
      const head = { producerId: 9n, producerEpoch: 0, baseSequence, records: 2 };
      const copies = endpoints.flatMap((once) =>
        Array.from({ length: 10 }, () => appendToTable(once, { topic, partition: 0 }, head, Buffer.from([1]))),
      );
      const answers = (await Promise.all(copies)).map(({ errorCode, baseOffset }) => `${errorCode} ${baseOffset}`);
      expect(new Set(answers)).toEqual(new Set([`0 ${index * 2}`]));
    }
    const { rows } = await pool.query("SELECT base FROM log_batch WHERE topic = $1 ORDER BY base", [topic]);
    expect(rows.map(({ base }) => base)).toEqual(["0", "2", "4"]);
  });
});
