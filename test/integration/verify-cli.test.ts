import { readFile, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { USUAL } from "../../examples/naive/naiveties.ts";
import { caseIds } from "../../src/verify/index.ts";
import { atEnd } from "../support/postgres.ts";
import { cli } from "./support/cli.ts";
import { naiveServer } from "./support/naive.ts";

const TOKEN = "sk_acme";
const NOTE = "a-note-that-nobody-may-print";
const BODY = `{"amount_minor":100,"note":"${NOTE}"}`;

const asAcme = (url: string, ...more: readonly string[]) => [
  ...["verify", `${url}/invoices`, "--header", `Authorization: Bearer ${TOKEN}`, "--body", BODY, ...more],
];

/** Two quick cases. */
const QUICK = ["--only", "replay-status,mismatch-after"];

/** A server that counts its connections and answers each request with 500. */
async function countingServer(): Promise<{ readonly url: string; connections(): number }> {
  let connections = 0;
  const server = createServer((_request, response) => void response.writeHead(500).end());
  server.on("connection", () => {
    connections += 1;
  });
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  atEnd(async () => void (await new Promise((done) => server.close(done))));
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, connections: () => connections };
}

describe("oncekey verify", () => {
  it("has help with its options and an example, and needs no database", async () => {
    const { code, stdout, stderr } = await cli(["verify", "--help"]);
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    for (const part of [
      "--profile NAME",
      "--count-url URL",
      "--dry-run",
      "  6    verify: a case failed",
      "  130  verify: ended by a signal",
      "oncekey verify http",
    ]) {
      expect(stdout).toContain(part);
    }
  });

  it("lists with --dry-run what it would do, and sends nothing", async () => {
    const { url, connections } = await countingServer();
    const { code, stdout, stderr } = await cli(asAcme(url, "--dry-run"));
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    for (const id of caseIds) expect(stdout).toContain(`\n  ${id} `);
    expect(stdout).toMatch(/Needs --other-header: another tenant's credentials/);
    expect(stdout).toMatch(
      /\nAbout \d+ requests, of which an API that passes carries out about \d+\. Nothing was sent\.\n$/,
    );
    const { cases, sends } = JSON.parse((await cli(asAcme(url, "--dry-run", "--json"))).stdout);
    expect(cases.map(({ id }: { id: string }) => id)).toEqual(caseIds);
    expect(sends).toBeGreaterThan(90);
    expect(connections()).toBe(0);
  });

  it("says first how many requests there will be, reports, and ends with 0 where nothing failed", async () => {
    const { code, stdout, stderr } = await cli(asAcme(await naiveServer({ naiveties: [] }), ...QUICK));
    expect(code).toBe(0);
    expect(stderr).toMatch(/^oncekey: About 4 real requests go to POST http:\/\/127.0.0.1:\d+\/invoices and .*\n$/);
    expect(stdout).toMatch(/^pass {12}replay-status: A retry gets the status of the first answer\n {16}First 201/m);
    expect(stdout).toMatch(
      /\n3 passed, 0 failed, 0 cannot be told from outside, 0 not applicable; 4 requests in [\d.]+ m?s\n$/,
    );
  });

  it("ends with 6 where a case failed, and says why that matters", async () => {
    const { code, stdout } = await cli(asAcme(await naiveServer({ naiveties: ["compares-nothing"] }), ...QUICK));
    expect(code).toBe(6);
    expect(stdout).toMatch(
      /^fail {12}mismatch-after: .*\n(?: {16}.*\n)* {16}Why it matters \(safety\): A key that is used twice/m,
    );
  });

  it("sends what it has announced, and no more", async () => {
    const url = await naiveServer({ naiveties: [] });
    const all = asAcme(url, "--count-url", `${url}/invoices`, "--json");
    const { sends, runs } = JSON.parse((await cli([...all, "--dry-run"])).stdout);
    const report = JSON.parse((await cli(all)).stdout);
    expect(report.counts.fail).toBe(0);
    expect(report.requests).toBeLessThanOrEqual(sends);
    const { data } = await (await fetch(`${url}/invoices`, { headers: { authorization: `Bearer ${TOKEN}` } })).json();
    expect(data.length).toBeLessThanOrEqual(runs);
    expect(data.length).toBeGreaterThan(10);
  });

  it("prints neither credentials nor bodies, keys or cookies, in no form of the report", async () => {
    const url = await naiveServer({ naiveties: USUAL });
    const junit = join(tmpdir(), `verify-${process.pid}.xml`);
    const args = asAcme(`${url}`, "--other-header", "Authorization: Bearer sk_globex", "--junit", junit);
    atEnd(() => rm(junit, { force: true }));
    const [text, json] = await Promise.all([cli(args), cli([...args, "--json"])]);
    for (const output of [text.stdout, text.stderr, json.stdout, json.stderr, await readFile(junit, "utf8")]) {
      expect(output).not.toMatch(new RegExp(`${TOKEN}|sk_globex|${NOTE}|seen=`));
      // No UUID: keys are some, and so are the ids of answers.
      expect(output).not.toMatch(/[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}/);
    }
    expect([text.code, json.code]).toEqual([6, 6]);
  });

  it("keeps the query of a URL to itself, and warns of a URL that is neither https nor on this machine", async () => {
    const url = (await naiveServer({ naiveties: [] })).replace("127.0.0.1", "[::ffff:127.0.0.1]");
    const args = [...asAcme("", ...QUICK).with(1, `${url}/invoices?api_key=s3cret`)];
    const { code, stdout, stderr } = await cli(args);
    expect(code).toBe(0);
    expect(stderr).toMatch(/^oncekey: The URL is neither https nor on this machine: .*\noncekey: About /);
    expect(stdout + stderr).not.toContain("s3cret");
  });

  it("takes header lines and the body from files", async () => {
    const url = await naiveServer({ naiveties: [] });
    const [headers, body] = ["headers", "body"].map((name) => join(tmpdir(), `verify-${process.pid}-${name}`));
    await writeFile(headers ?? "", `Accept: application/json\nAuthorization: Bearer ${TOKEN}\n`);
    await writeFile(body ?? "", BODY);
    atEnd(async () => void (await Promise.all([headers, body].map((path) => rm(path ?? "")))));
    const given = ["verify", `${url}/invoices`, `--header-file=${headers}`, `--body-file=${body}`, ...QUICK];
    expect(await cli(given)).toMatchObject({ code: 0, stdout: expect.stringContaining("3 passed, 0 failed") });
  });

  it("says of a request that is not accepted what it got, and judges nothing", async () => {
    const { code, stdout } = await cli(["verify", `${await naiveServer({ naiveties: [] })}/invoices`, "--body", BODY]);
    expect(code).toBe(6);
    expect(stdout).toMatch(/^fail {12}accepted: .*\n {16}It got 401 unauthenticated/m);
    expect(stdout).toContain(`0 passed, 1 failed, ${caseIds.length - 1} cannot be told from outside`);
  });

  it("reports a host that does not answer as a request that was not accepted", async () => {
    const { code, stdout } = await cli(["verify", "http://127.0.0.1:1/", "--body", BODY]);
    expect(code).toBe(6);
    expect(stdout).toContain("It got no answer (ECONNREFUSED).");
  });
});

describe("a command line that is not understood", () => {
  const usual = "http://127.0.0.1:1/invoices";
  it.each([
    ["no URL", [], /The url is missing/],
    ["another scheme", ["ftp://127.0.0.1/"], /must be an http or https URL/],
    ["credentials in the URL", ["http://user:s3cret@127.0.0.1/"], /must hold no credentials/],
    ["an unknown profile", [usual, "--profile", "s3cret"], /--profile must be one of ietf, stripe/],
    ["an unknown case", [usual, "--only", "s3cret"], /--only takes ids of cases/],
    ["a header without a colon", [usual, "--header", "s3cret"], /--header must be "Name: value"/],
    ["a header of two lines", [usual, "--header", "A: b\r\nC: s3cret"], /--header must be "Name: value"/],
    ["a header that is the kit's own", [usual, "--header", "Content-Length: 5"], /must not hold the header/],
    ["two bodies", [usual, "--body", "{}", "--body-file", "s3cret"], /--body or --body-file, not both/],
    ["a file that is not there", [usual, "--body-file", "/s3cret"], /The file of --body-file cannot be read/],
    ["a report that cannot be kept", [usual, "--junit", "/s3cret/report.xml"], /The file of --junit cannot be written/],
    ["a revocation without its end", [usual, "--revoke-url", usual], /belong together/],
    ["a pointer that is none", [usual, "--count-url", usual, "--count-pointer", "s3cret"], /must be a JSON Pointer/],
    ["a pointer without a URL", [usual, "--count-pointer", "/data"], /belongs to --count-url/],
    ["two places of the key", [usual, "--key-header", "A", "--key-member", "b"], /not both/],
    ["a form of keys that is none", [usual, "--key-form", "s3cret"], /must be quoted or bare/],
    ["a key in a body that is not there", [usual, "--profile", "square"], /give --body or --body-file/],
    ["a duration that is none", [usual, "--timeout", "s3cret"], /--timeout must be a duration/],
  ] as const)("is refused with 2: %s", async (_what, args, message) => {
    const { code, stdout, stderr } = await cli(["verify", ...args]);
    expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
    expect(stderr).toMatch(message);
    expect(stderr).not.toContain("s3cret");
  });
});
