import { fromPg } from "oncekey/drivers/pg";
import { migrate, printMigrations } from "oncekey/postgres";
import pg from "pg";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { atEnd, createDatabase, query, type TestServer, testPool } from "../support/postgres.ts";
import { copyEntries, durableServer, findings, foundIn, healthyDatabase, lookAt } from "./support/doctor.ts";
import { pgbouncerBinary, startPgBouncer } from "./support/pgbouncer.ts";

let server: TestServer;

beforeAll(async () => {
  server = await durableServer();
});

afterAll(() => server.close());

describe("oncekey doctor, of a database in which nothing is wrong", () => {
  it("finds nothing, and says of every check what it saw", async () => {
    const results = await lookAt(await healthyDatabase(server));
    expect(foundIn(results)).toEqual([]);
    const skipped = results.filter(({ result }) => result === "skipped");
    expect(skipped.map(({ name }) => name)).toEqual(["key reuse", "routes"]);
    expect(results.filter(({ result, seen }) => result !== "skipped" && (result !== "ok" || seen === ""))).toEqual([]);
  });

  it("finds nothing in a schema of another name either", async () => {
    const { url } = await createDatabase({ server, migrated: false });
    await migrate(fromPg(testPool(url)), { schema: "payments_once" });
    const results = await lookAt(url, { schema: "payments_once" });
    expect(foundIn(results)).toEqual([]);
    expect(results.filter(({ result }) => result === "skipped")).toHaveLength(2);
  });
});

/** One fault a row: what is done to a healthy database (DB stands for its name), and all that is found then. */
const FAULTS: readonly (readonly [fault: string, plant: readonly string[], found: readonly RegExp[]])[] = [
  [
    "an index is missing",
    ["DROP INDEX oncekey.entry_lease"],
    [/^indexes, warning: The index entry_lease of entry is missing\.$/],
  ],
  [
    "an index was left invalid",
    ["UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'oncekey.outbox_due'::regclass"],
    [/^indexes, warning: The index outbox_due of outbox is there but not valid\.$/],
  ],
  [
    "the index that decides is missing",
    ["ALTER TABLE oncekey.entry DROP CONSTRAINT entry_pkey CASCADE"],
    [/^indexes, error: The index entry_pkey of entry is missing\.$/],
  ],
  [
    "a table is unlogged",
    ["ALTER TABLE oncekey.outbox SET UNLOGGED"],
    [/^indexes, error: The table outbox is UNLOGGED\.$/],
  ],
  [
    "commits do not wait for the disk",
    ["ALTER DATABASE DB SET synchronous_commit = off"],
    [/^durability, error: synchronous_commit is off\.$/],
  ],
  [
    "another isolation level is the default",
    ["ALTER DATABASE DB SET default_transaction_isolation = 'serializable'"],
    [/^isolation, note: Transactions are SERIALIZABLE unless they ask/],
  ],
  [
    "transactions are read-only by default",
    ["ALTER DATABASE DB SET default_transaction_read_only = on"],
    [/^isolation, error: Transactions are read-only by default/],
  ],
  [
    "autovacuum is switched off for a table",
    ["ALTER TABLE oncekey.outbox SET (autovacuum_enabled = false)"],
    [/^autovacuum, error: Autovacuum is switched off for outbox\.$/],
  ],
  [
    "autovacuum comes as late as the server's default says",
    ["ALTER TABLE oncekey.entry RESET (autovacuum_vacuum_scale_factor)"],
    [/^autovacuum, warning: Vacuum comes to entry only when 20 % of its rows are dead\.$/],
  ],
  [
    "a migration is missing",
    ["DELETE FROM oncekey.migration WHERE number = (SELECT max(number) FROM oncekey.migration)"],
    [/^schema, error: The database lacks 1 migration/],
  ],
  [
    "a newer version migrated it and says that this one still fits",
    ["INSERT INTO oncekey.migration (number, name, checksum, minimum_reader) VALUES (9000, 'later', 'x', 1)"],
    [/^schema, note: The database has migration 9000, which this version does not know/],
  ],
  [
    "a newer version migrated it and says that this one does not fit",
    ["INSERT INTO oncekey.migration (number, name, checksum, minimum_reader) VALUES (9000, 'later', 'x', 9000)"],
    [/^schema, error: The database was migrated by a newer version/],
  ],
];

describe("oncekey doctor finds exactly", () => {
  it.each(FAULTS)("%s", async (_fault, plant, found) => {
    const url = await healthyDatabase(server);
    const name = new URL(url).pathname.slice(1);
    await query(url, ...plant.map((statement) => statement.replace("DB", name)));
    expect(await findings(url)).toEqual(found.map((pattern) => expect.stringMatching(pattern)));
  });

  it("a fix that mends what it found, where the fix is a statement", async () => {
    const url = await healthyDatabase(server);
    await query(
      url,
      "DROP INDEX oncekey.entry_lease, oncekey.entry_purge",
      "ALTER TABLE oncekey.body DROP CONSTRAINT body_pkey",
      "ALTER TABLE oncekey.inbox SET UNLOGGED",
      "ALTER TABLE oncekey.entry SET (autovacuum_vacuum_scale_factor = 0.5)",
      "ALTER TABLE oncekey.outbox SET (autovacuum_enabled = off)",
    );
    const results = await lookAt(url);
    expect(foundIn(results)).toHaveLength(6);
    for (const { fix } of results.flatMap((result) => result.findings)) await query(url, fix);
    expect(await findings(url)).toEqual([]);
  });

  it("an empty database, and looks at what there is", async () => {
    const { url } = await createDatabase({ server, migrated: false });
    const results = await lookAt(url);
    expect(foundIn(results)).toEqual([expect.stringMatching(/^schema, error: The database has no Oncekey schema/)]);
    expect(results[0]?.findings[0]?.fix).toBe("oncekey migrate");
    const seen = results.filter(({ result }) => result === "ok").map(({ name }) => name);
    expect(seen).toEqual(["durability", "isolation", "pooler", "connections", "clock"]);
  });

  it("a schema of the first release, and looks at what that one had", async () => {
    const { url } = await createDatabase({ server, migrated: false });
    const first = printMigrations().slice(0, -printMigrations({ from: 2 }).length);
    await query(url, first);
    const results = await lookAt(url);
    expect(foundIn(results)).toEqual([
      expect.stringMatching(/^schema, error: The database lacks \d+ migration\(s\), from 2 /),
    ]);
    const skipped = results.filter(({ result }) => result === "skipped").map(({ name }) => name);
    expect(skipped).toEqual(["stuck", "key reuse", "routes"]);
    expect(results.find(({ name }) => name === "indexes")?.seen).toMatch(/^(\d+) of \1 indexes$/);
  });

  it("a server without fsync", async () => {
    const { url } = await createDatabase();
    expect(await findings(url)).toEqual([
      "durability, error: fsync is off.",
      "durability, warning: full_page_writes is off.",
    ]);
  });

  it("a clock of this machine that is wrong, in either direction", async () => {
    const url = await healthyDatabase(server);
    const off = (ms: number) => findings(url, { now: () => Date.now() + ms });
    expect(await off(3_600_000)).toEqual([
      expect.stringMatching(/^clock, warning: This machine's clock is .* ahead of/),
    ]);
    expect(await off(-3_600_000)).toEqual([
      expect.stringMatching(/^clock, warning: This machine's clock is .* behind/),
    ]);
  });

  it("pools that do not fit the server, or their requests", async () => {
    const url = await healthyDatabase(server);
    expect(await findings(url, { given: { processes: 100 } })).toEqual([
      expect.stringMatching(/^connections, error: 100 processes with 10 connections each may open 1,000/),
    ]);
    expect(await findings(url, { given: { pool: 1, concurrency: null } })).toEqual([
      "connections, warning: The pool has one connection.",
    ]);
    expect(await findings(url, { given: { concurrency: 40 } })).toEqual([
      "connections, warning: Of 40 requests at once, 9 have a transaction; 31 wait for a connection.",
    ]);
  });

  it("a server whose connections are nearly all taken", async () => {
    const crowded = await durableServer({ max_connections: "12", superuser_reserved_connections: "2" });
    try {
      const { url } = await createDatabase({ server: crowded });
      const clients = await Promise.all(
        Array.from({ length: 7 }, async () => {
          const client = new pg.Client({ connectionString: url });
          client.on("error", () => {});
          await client.connect();
          return client;
        }),
      );
      expect(await findings(url)).toEqual([
        // Background work of the server itself is not counted; a connection that was just closed may still be.
        expect.stringMatching(/^connections, warning: \d+ of the server's 10 connections/),
        expect.stringMatching(/^connections, error: 2 processes with 10 connections each may open 20/),
      ]);
      await Promise.all(clients.map((client) => client.end()));
    } finally {
      await crowded.close();
    }
  });

  it("a transaction that is open for long", async () => {
    const url = await healthyDatabase(server);
    const client = new pg.Client({ connectionString: url });
    await client.connect();
    await client.query("BEGIN");
    const [pid] = (await client.query("SELECT pg_backend_pid() AS pid")).rows;
    expect(await findings(url, { given: { longTransactionMs: 1 } })).toEqual([
      expect.stringMatching(
        new RegExp(`^autovacuum, warning: 1 transaction is open for long, the oldest for .* \\(process ${pid.pid}\\)`),
      ),
    ]);
    await client.end();
  });

  it("dead rows that vacuum does not take away", async () => {
    const url = await healthyDatabase(server);
    await query(url, "ALTER TABLE oncekey.entry SET (autovacuum_enabled = false)");
    await copyEntries(
      url,
      12_000,
      `jsonb_build_object('key', 'k' || n, 'fingerprint', '\\x010100' || to_hex(n + 100000) || '0')`,
    );
    await query(url, "DELETE FROM oncekey.entry WHERE key LIKE 'k%'");
    // Counted when the session that deleted has told the server's statistics.
    const dead = "SELECT n_dead_tup::int AS dead FROM pg_stat_all_tables WHERE relid = 'oncekey.entry'::regclass";
    await expect.poll(async () => (await query(url, dead))[0]?.dead, { timeout: 30_000 }).toBeGreaterThan(10_000);
    expect(await findings(url)).toEqual([
      "autovacuum, error: Autovacuum is switched off for entry.",
      expect.stringMatching(/^autovacuum, warning: entry has 1[12],\d{3} dead rows; vacuum was due at /),
    ]);
  });
});

describe.skipIf(pgbouncerBinary() === null)("oncekey doctor, through PgBouncer", () => {
  const through = async (mode: "session" | "transaction" | "statement") => {
    const url = await healthyDatabase(server);
    const bouncer = await startPgBouncer(pgbouncerBinary() ?? "", server.port, mode);
    atEnd(() => bouncer.close());
    return lookAt(bouncer.urlOf(new URL(url).pathname.slice(1)));
  };

  it("sees transaction mode, and everything else as without", async () => {
    const results = await through("transaction");
    expect(foundIn(results)).toEqual([
      "pooler, note: A pooler in transaction mode stands between: one server process served two clients.",
    ]);
    expect(results.filter(({ result }) => result === "skipped")).toHaveLength(2);
  });

  it("does not take session mode for transaction mode", async () => {
    expect(foundIn(await through("session"))).toEqual([
      expect.stringMatching(/^pooler, note: A pooler stands between\. No server process was shared/),
    ]);
  });

  it("says that statement mode cannot work, and what it could not look at", async () => {
    const results = await through("statement");
    expect(foundIn(results)).toEqual([expect.stringMatching(/^pooler, error: A pooler in statement mode/)]);
    expect(results.filter(({ result }) => result === "skipped")).toHaveLength(results.length - 1);
  });
});
