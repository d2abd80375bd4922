import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createDatabase, passTime, query, type TestServer } from "../support/postgres.ts";
import { entriesOn } from "./support/cli-entries.ts";
import { copyEntries, durableServer, findings, healthyDatabase, lookAt } from "./support/doctor.ts";

const HOUR_MS = 3_600_000;

let server: TestServer;

beforeAll(async () => {
  server = await durableServer();
});

afterAll(() => server.close());

/** A fresh database and an instance on it. */
async function service(options = {}) {
  const { url } = await createDatabase({ server });
  return { url, entries: await entriesOn(url, options) };
}

/** The SQL of a fingerprint of this form (1: the request as it came, 3: nothing is compared) and number. */
const fingerprint = (form: number, n: string) => `'\\x010${form}00' || encode(sha256((${n})::text::bytea), 'hex')`;

const minutesAgo = (minutes: string) => `now() - ${minutes} * interval '1 minute'`;

describe("oncekey doctor, of retention", () => {
  it("compares what operations keep with what clients do", async () => {
    const url = await healthyDatabase(server);
    expect(await findings(url, { given: { clientWindowMs: 48 * HOUR_MS } })).toEqual(
      [
        "retention, error: charges.create keeps an outcome for 1 d, clients retry for 2 d; seen in 1 outcome.",
        "retention, error: invoices.create keeps an outcome for 1 d, clients retry for 2 d; seen in 1 outcome.",
      ]
        .map((line) => expect.stringMatching(line))
        .toSorted(),
    );
  });

  it("knows a tombstone, under which a late retry is refused and does not run", async () => {
    const { url, entries } = await service({ tombstoneMs: 72 * HOUR_MS });
    await entries.invoice("k1");
    expect(await findings(url, { given: { clientWindowMs: 48 * HOUR_MS } })).toEqual([
      expect.stringMatching(/^retention, warning: invoices\.create keeps an outcome for 1 d/),
    ]);
  });

  it("sees that nothing purges", async () => {
    const { url, entries } = await service();
    await entries.charge("k1");
    await passTime(url, 24 * HOUR_MS + HOUR_MS / 2);
    expect(await findings(url)).toEqual([]);
    await passTime(url, HOUR_MS);
    expect(await findings(url)).toEqual(["purge, warning: There is 1 entry past retention for more than an hour."]);
  });
});

describe("oncekey doctor, of entries that are stuck", () => {
  it("says that no sweeper runs", async () => {
    // A long lease: its renewal would undo what passTime does.
    const { url, entries } = await service({ leaseMs: 600_000 });
    const goOn = await entries.standing("k1");
    expect(await findings(url)).toEqual([]);
    await passTime(url, HOUR_MS);
    const stuck = (await lookAt(url)).find(({ name }) => name === "stuck");
    expect(stuck?.findings).toEqual([
      {
        severity: "warning",
        what: expect.stringMatching(
          /^1 entry is overdue for the sweeper in standing\.create \(phases, version 1\), .*: [0-9a-f]{64}\.$/,
        ),
        why: "No sweeper has been seen in the last minute.",
        fix: "oncekey worker ./worker.js",
      },
    ]);
    await goOn().catch(() => {});
  });

  it("tells a sweeper that does not know the operation from one that does not keep up", async () => {
    const { url, entries } = await service({ leaseMs: 600_000 });
    const goOn = await entries.standing("k1");
    await passTime(url, HOUR_MS);
    const announce = (operation: string) =>
      query(url, `INSERT INTO oncekey.sweep_target VALUES (now(), 1, '${operation}', 'phases')`);
    const why = async () => (await lookAt(url)).flatMap((check) => check.findings.map((finding) => finding.why));
    await announce("other.create");
    expect(await why()).toEqual([expect.stringMatching(/^Sweepers run, but none knows this operation/)]);
    await announce("standing.create");
    expect(await why()).toEqual([expect.stringMatching(/^A sweeper knows the operation and does not keep up/)]);
    await goOn().catch(() => {});
  });

  it("shows what needs a person, and why", async () => {
    const { url, entries } = await service();
    await entries.payout("k1");
    expect(await findings(url)).toEqual([
      expect.stringMatching(
        /^stuck, warning: 1 entry needs recovery in payouts\.create \(call_unknown: .*: [0-9a-f]{64}\.$/,
      ),
    ]);
  });

  it("shows messages that were given up, and such that nobody takes", async () => {
    const { url, entries } = await service();
    await entries.invoice("k1");
    await entries.invoice("k2");
    await query(
      url,
      "UPDATE oncekey.outbox SET state = 'dead', reason = 'refused' WHERE entry_id = (SELECT id FROM oncekey.entry WHERE key = 'k1')",
    );
    expect(await findings(url)).toEqual([
      "messages, warning: 1 message of invoice.created could not be delivered and is given up.",
    ]);
    await passTime(url, 600_000);
    expect(await findings(url)).toEqual([
      "messages, warning: 1 message of invoice.created could not be delivered and is given up.",
      expect.stringMatching(/^messages, warning: 1 message is due for more than 5 min, the oldest for 10 min/),
    ]);
  });
});

describe("oncekey doctor, of keys", () => {
  it("suspects a client that sends one request under many keys within minutes", async () => {
    const url = await healthyDatabase(server);
    const same = fingerprint(1, "'same'");
    await copyEntries(
      url,
      7,
      `jsonb_build_object('key', 'secret-key-' || n, 'client', 'careless', 'fingerprint', ${same}, 'created_at', ${minutesAgo("n")})`,
    );
    const results = await lookAt(url);
    const all = results.flatMap((check) => check.findings);
    expect(all.map(({ what }) => what)).toEqual([
      expect.stringMatching(
        /^A client \(digest [0-9a-f]{12}\) sent 1 request to charges\.create under 7 keys within minutes/,
      ),
    ]);
    expect(JSON.stringify(results)).not.toMatch(/secret-key|careless|acme/);
    const [statement = ""] = (all[0]?.fix ?? "").split(";");
    expect(await query(url, statement)).toEqual([{ tenant: "acme", client: "careless" }]);
  });

  it("does not suspect who wants the same thing twice, again another day, or where nothing is compared", async () => {
    const url = await healthyDatabase(server);
    const copies = (count: number, client: string, print: string, when: string) =>
      copyEntries(
        url,
        count,
        `jsonb_build_object('key', 'k' || n, 'client', '${client}', 'fingerprint', ${print}, 'created_at', ${when})`,
      );
    await copies(2, "twice", fingerprint(1, "'twice'"), minutesAgo("n"));
    await copies(9, "daily", fingerprint(1, "'daily'"), minutesAgo("n * 60"));
    await copies(9, "queue", fingerprint(3, "'queue'"), minutesAgo("n"));
    await copies(9, "busy", fingerprint(1, "n"), minutesAgo("n"));
    expect(await findings(url)).toEqual([]);
  });

  it("suspects keys that callers who know nothing of each other share for the same request", async () => {
    const url = await healthyDatabase(server);
    const copies = (key: string, print: string) =>
      copyEntries(url, 4, `jsonb_build_object('key', ${key}, 'tenant', 'tenant-' || n, 'fingerprint', ${print})`);
    // The same short key for other requests is a coincidence.
    await copies("'1'", fingerprint(1, "n"));
    expect(await findings(url)).toEqual([]);
    await copies("'digest-of-body'", fingerprint(1, "'body'"));
    const results = await lookAt(url);
    const all = results.flatMap((check) => check.findings);
    expect(all.map(({ severity, what }) => `${severity}: ${what}`)).toEqual([
      "warning: In charges.create 1 key was sent by several tenants or clients, each with the same request.",
    ]);
    expect(JSON.stringify(results)).not.toMatch(/digest-of-body|tenant-\d/);
    const [statement = ""] = (all[0]?.fix ?? "").split("; --");
    expect(await query(url, statement)).toHaveLength(4);
  });

  it("notes UUIDs that are digests of a name", async () => {
    const { url, entries } = await service();
    await entries.invoice("2ed6657d-e927-568b-95e1-2665a8aea6a2");
    expect(await findings(url)).toEqual([
      "key of payload, note: In invoices.create 1 key is a UUID of version 3 or 5: digests of a name.",
    ]);
  });

  it("says of keys that come again with another payload that no row can tell", async () => {
    const results = await lookAt(await healthyDatabase(server));
    expect(results.find(({ name }) => name === "key reuse")).toEqual({
      name: "key reuse",
      result: "skipped",
      seen: expect.stringMatching(/leaves no row; count answers of 422 idempotency_payload_mismatch by client/),
      findings: [],
    });
  });
});

describe("oncekey doctor, of growth", () => {
  it("forecasts where it ends, and says when it is too much for one table", async () => {
    const url = await healthyDatabase(server);
    // As many a day as are still far too many where the machine takes half an hour for this.
    const made = `jsonb_build_object('created_at', now() - interval '1 minute', 'expires_at', now() + interval '100 days')`;
    await copyEntries(
      url,
      2_000,
      `jsonb_build_object('key', 'k' || n, 'fingerprint', ${fingerprint(1, "n")}) || ${made}`,
    );
    const results = await lookAt(url, { given: { manyPerDay: 50_000 } });
    const growth = results.find(({ name }) => name === "growth");
    expect(growth?.findings.map(({ severity, what }) => `${severity}: ${what}`)).toEqual([
      expect.stringMatching(/^warning: There are about [\d,]+ a day, kept for \d\d d .*: ends at about [\d,]+ entries/),
      expect.stringMatching(/^note: The table has .* and will grow: about [\d,]+ a day.* GiB\.$/),
    ]);
    expect(results.filter(({ findings: found }) => found.length > 0)).toHaveLength(1);
  });

  it("reads a part of a large table, and says so", async () => {
    const url = await healthyDatabase(server);
    // Long rows: 60 MB of pages, of which 32 MiB are read.
    await query(url, "ALTER TABLE oncekey.entry ALTER COLUMN outcome SET STORAGE PLAIN");
    const long = `'\\x' || repeat('ab', 7000)`;
    await copyEntries(
      url,
      7_500,
      `jsonb_build_object('key', 'k' || n, 'fingerprint', ${fingerprint(1, "n")}, 'outcome', ${long})`,
    );
    const results = await lookAt(url, { given: { clientWindowMs: 48 * HOUR_MS } });
    const retention = results.find(({ name }) => name === "retention");
    expect(retention?.seen).toMatch(/\(in a sample of 5\d % of the table\)$/);
    expect(retention?.findings.map(({ what }) => what)).toContainEqual(
      expect.stringMatching(/^charges\.create .* seen in [34],\d{3} outcomes \(in a sample of 5\d % of the table\)\.$/),
    );
  });
});
