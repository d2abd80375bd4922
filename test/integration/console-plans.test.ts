import { createConsole, createConsoleIndexes } from "oncekey/console";
import { fromPg } from "oncekey/drivers/pg";
import { changeLayout, type Driver } from "oncekey/postgres";
import type pg from "pg";
import { beforeAll, describe, expect, it } from "vitest";
import { entryReference } from "../../src/core/reference.ts";
import { createDatabase, query, testPool } from "../support/postgres.ts";
import { ADA } from "./support/console-world.ts";

const ROWS = 100_000;

/** Entries of two tenants, one in a thousand of which needs a person, and as many messages. */
const FILL = [
  `INSERT INTO oncekey.entry (id, fence, seed, fingerprint, state, run_kind, tenant, client, operation, key,
      operation_version, created_at, completed_at, expires_at, status, outcome)
    SELECT sha256(n::text::bytea), decode(repeat('00', 16), 'hex'), decode(repeat('00', 16), 'hex'), sha256(n::text::bytea),
      'succeeded', 'phases', CASE WHEN n % 10 = 0 THEN 'globex' ELSE 'acme' END, 'app', 'orders.' || n % 5, 'key-' || n, 1,
      now() - n * interval '1 second', now(), now() + interval '1 hour', 201, '\\x01'
    FROM generate_series(1, ${ROWS}) AS n`,
  `INSERT INTO oncekey.entry (id, fence, seed, fingerprint, state, run_kind, tenant, client, operation, key,
      operation_version, created_at, reason)
    SELECT sha256('open' || n::text::bytea), decode(repeat('00', 16), 'hex'), decode(repeat('00', 16), 'hex'), '\\x01',
      'needs_recovery', 'phases', 'acme', 'app', 'orders.1', 'open-' || n, 1, now() - n * interval '1 second', 'gave_up'
    FROM generate_series(1, 100) AS n`,
  `INSERT INTO oncekey.outbox (id, topic, payload, tenant, entry_id, order_by, state, delivered_at, created_at, available_at)
    SELECT n::text, 'topic.' || n % 7, '{}', 'acme', sha256(n::text::bytea), CASE WHEN n % 2 = 0 THEN 'o' || n % 50 END,
      CASE WHEN n % 1000 = 0 THEN 'dead' WHEN n % 1000 = 1 THEN 'pending' ELSE 'delivered' END,
      CASE WHEN n % 1000 > 1 THEN now() END, now(), now()
    FROM generate_series(1, ${ROWS}) AS n`,
  `INSERT INTO oncekey.resolution (entry_id, tenant, verdict, resolved_by, state_before, open_intents, forced, resolved_at)
    SELECT sha256(n::text::bytea), 'acme', 'released', 'ada', 'needs_recovery', '[]', false, now()
    FROM generate_series(1, 20000) AS n`,
  `INSERT INTO oncekey.audit (entry_id, tenant, action, acted_by, acted_at)
    SELECT sha256(n::text::bytea), 'acme', 'reveal_key', 'ada', now() FROM generate_series(1, 20000) AS n`,
  "ANALYZE",
];

interface Node {
  readonly Plans?: readonly Node[];
  readonly "Node Type": string;
  readonly "Relation Name"?: string;
  readonly "Actual Rows"?: number;
  readonly "Actual Loops"?: number;
}

const nodesOf = (node: Node | undefined): Node[] =>
  node === undefined ? [] : [node, ...(node.Plans ?? []).flatMap(nodesOf)];

/** A console whose every statement is explained, in the transaction in which it runs. */
function explained(pool: pg.Pool) {
  const real = fromPg(pool);
  const nodes: Node[] = [];
  const driver: Driver<pg.PoolClient> = {
    ...real,
    async run(sql, parameters, tx) {
      // Changes do not go into an EXPLAIN that runs them twice.
      if (/^(WITH|SELECT)/.test(sql.trim()) && !/set_config|INSERT|UPDATE|DELETE/.test(sql)) {
        const client = tx ?? pool;
        const { rows } = await client.query({ text: `EXPLAIN (ANALYZE, FORMAT JSON) ${sql}`, values: [...parameters] });
        nodes.push(...nodesOf((rows[0]["QUERY PLAN"] as { Plan: Node }[])[0]?.Plan));
      }
      return real.run(sql, parameters, tx);
    },
  };
  let operator = ADA;
  const mounted = createConsole({
    driver,
    authorize: () => operator,
    onError: (error) => expect.unreachable(String(error)),
  });
  const send = async (method: string, path: string, body?: object) => {
    nodes.length = 0;
    const headers = { origin: "http://console.test", host: "console.test", "content-type": "application/json" };
    const csrf = (await (await mounted.fetch(new Request("http://console.test/console/api/session"))).json()) as {
      csrf: string;
    };
    const init =
      method === "GET" ? {} : { headers: { ...headers, "x-oncekey-csrf": csrf.csrf }, body: JSON.stringify(body) };
    const response = await mounted.fetch(new Request(`http://console.test/console/api/${path}`, { method, ...init }));
    return { status: response.status, body: await response.json() };
  };
  return {
    send,
    nodes,
    as: (tenant: string | null) => {
      operator = { ...ADA, tenant };
    },
  };
}

const BIG = ["entry", "outcome", "outbox", "resolution", "audit"];

describe.each(["plain", "partitioned"] as const)(
  "among a hundred thousand entries, in the %s layout, the console",
  (layout) => {
    let world: ReturnType<typeof explained>;
    beforeAll(async () => {
      const { url } = await createDatabase();
      const pool = testPool(url);
      // Before the change: its guard would take a lock for each entry.
      await query(url, ...FILL);
      if (layout === "partitioned") {
        await changeLayout(fromPg(pool), "partitioned");
        await query(
          url,
          `WITH moved AS (DELETE FROM oncekey.entry WHERE state = 'succeeded' AND tenant = 'acme' RETURNING *)
         INSERT INTO oncekey.outcome SELECT * FROM moved`,
          "ANALYZE",
        );
      }
      await createConsoleIndexes(fromPg(pool));
      await query(url, "ANALYZE");
      world = explained(pool);
    }, 120_000);

    const reference = async () => {
      const [id] = await ids();
      return entryReference({ id: Buffer.from(id, "hex"), fingerprint: Buffer.from(id, "hex") });
    };
    const ids = async (): Promise<[string]> => {
      const { body } = await world.send("GET", "entries?operation=orders.0");
      return [(body as { entries: { id: string }[] }).entries[0]?.id ?? ""];
    };

    it.each([null, "acme", "globex"])(
      "answers every page from indexes, reading no more than it shows (operator of %s)",
      async (tenant) => {
        world.as(tenant);
        const [id] = await ids();
        const pages: [string, string, object?][] = [
          ["GET", "overview"],
          ["GET", "entries"],
          ["GET", "entries?operation=orders.1"],
          ["GET", "entries?from=2020-01-01T00:00:00Z&to=2100-01-01T00:00:00Z"],
          ["GET", "entries?state=needs_recovery"],
          ["GET", "entries?state=in_progress"],
          ["GET", `entries?id=${id.slice(0, 16)}`],
          ["POST", "entries/search", { key: "key-77" }],
          ["POST", "entries/search", { key: "key-77", tenant: tenant ?? "acme", client: "app", operation: "orders.2" }],
          ["POST", "entries/search", { reference: await reference() }],
          ["GET", `entries/${id}`],
          ["GET", "unresolved"],
          ["GET", "outbox?state=dead"],
          ["GET", "outbox?state=pending"],
          ["GET", "audit"],
          ["GET", "clients"],
        ];
        for (const [method, path, body] of pages) {
          expect([path, (await world.send(method, path, body)).status]).toEqual([path, 200]);
          expect(world.nodes.length).toBeGreaterThan(0);
          const whole = world.nodes.filter((node) => node["Node Type"] === "Seq Scan" && isBig(node["Relation Name"]));
          expect([path, whole.map((node) => node["Relation Name"])]).toEqual([path, []]);
          // A clients page reads a bounded sample; of one tenant's entries those of others are passed by in some.
          const most = Math.max(...world.nodes.map((node) => (node["Actual Rows"] ?? 0) * (node["Actual Loops"] ?? 1)));
          expect([path, most <= (path === "clients" ? 20_000 : 1_100)]).toEqual([path, true]);
        }
      },
    );

    it("goes through a list page by page, and tells each entry once", async () => {
      world.as("globex");
      const seen: string[] = [];
      let cursor: string | null = "";
      for (let page = 0; page < 5 && cursor !== null; page++) {
        const told = await world.send("GET", `entries?cursor=${cursor}`);
        const { entries, next } = told.body as { entries: { id: string; createdAt: string }[]; next: string | null };
        expect(entries).toHaveLength(50);
        seen.push(...entries.map(({ createdAt, id }) => `${createdAt} ${id}`));
        cursor = next;
      }
      expect(new Set(seen).size).toBe(250);
      expect(seen.map((one) => one.split(" ")[0])).toEqual(
        seen
          .map((one) => one.split(" ")[0])
          .sort()
          .reverse(),
      );
    });

    const isBig = (name: string | undefined) =>
      BIG.includes(name ?? "") || (name?.startsWith("outcome_") === true && name !== "outcome_partition");
  },
);
