import { writeFile } from "node:fs/promises";
import { caseIds, junitXml, type Plan, planRun, type RunReport, runCases, type Target } from "../verify/index.ts";
import type { Command, Report } from "./command.ts";
import { type CommandLine, UsageError } from "./command-line.ts";
import { givenTarget } from "./verify-target.ts";
import { planText, reportText } from "./verify-text.ts";

/** `oncekey verify <url>`: tries from outside what an API does with its idempotency keys. */
export const verifyCommand: Command = {
  summary: "try any HTTP API's idempotency keys from outside",
  about: `Sends real requests to one operation of an HTTP API, in whatever language it is written, and reports what it does
with idempotency keys: replays, duplicates at once, other content, keys of odd forms, other callers, broken connections.
It needs a request that the API accepts; each further option lets it try more. Before the first request it says on
standard error how many there will be: use an account for tests. Only the URLs that are given are asked, redirects are
not followed. Keys, bodies and the values of headers are never printed. Needs no database.`,
  operands: ["url"],
  options: {
    method: { value: "METHOD", meaning: "default: POST" },
    header: { value: "LINE", many: true, meaning: 'a header line of every request, "Name: value"; any number' },
    "header-file": { value: "FILE", meaning: "such lines from a file: other users of a machine can see command lines" },
    body: { value: "TEXT", meaning: "the body of a request that the API accepts" },
    "body-file": { value: "FILE", meaning: "the same, from a file" },
    "content-type": { value: "TYPE", meaning: "default: application/json, where there is a body" },
    profile: { value: "NAME", meaning: "ietf (default), stripe, stripe-v2, adyen, paypal, square, google, azure" },
    "key-header": { value: "NAME", meaning: "the header of the key, where it is not the profile's" },
    "key-member": { value: "NAME", meaning: "the member of the body that is the key" },
    "key-form": { value: "FORM", meaning: "quoted or bare: how the key stands in its header" },
    "key-optional": { meaning: "a request without a key is fine" },
    "count-url": { value: "URL", meaning: "GET tells how often the operation ran: a list, or a number" },
    "count-pointer": { value: "POINTER", meaning: "where it stands in the JSON; default: /data" },
    "other-header": { value: "LINE", many: true, meaning: "credentials of another tenant" },
    "other-url": { value: "URL", meaning: "another operation that takes keys" },
    "other-url-body": { value: "TEXT", meaning: "its body; default: the first one's" },
    "other-body": { value: "TEXT", meaning: "another request; default: the given one with one member changed" },
    "refused-body": { value: "TEXT", meaning: "a request that the business refuses (a declined card)" },
    "number-pointer": { value: "POINTER", meaning: "a number that may go past 2^53; default: the first whole one" },
    "revoke-url": { value: "URL", meaning: "POST takes the credentials' rights away" },
    "revoke-body": { value: "TEXT", meaning: "the JSON body of that, and of the next where it has none" },
    "restore-url": { value: "URL", meaning: "POST gives them back" },
    "restore-body": { value: "TEXT", meaning: "its JSON body" },
    "revoked-header": { value: "LINE", many: true, meaning: "credentials that were good once" },
    "slow-header": { value: "LINE", many: true, meaning: "makes the operation slow, so that requests overlap" },
    "late-header": { value: "LINE", many: true, meaning: "says that a request was first sent long ago" },
    retention: { value: "DURATION", meaning: "how long outcomes are kept; waited for up to 1min" },
    timeout: { value: "DURATION", meaning: "longest time for an answer, and for a retry to be final; default: 30s" },
    only: { value: "CASES", meaning: "these cases, with commas between them" },
    skip: { value: "CASES", meaning: "all cases but these" },
    "dry-run": { meaning: "list the cases and send nothing" },
    junit: { value: "FILE", meaning: "also write the report as JUnit XML" },
    json: { meaning: "print JSON" },
    help: { meaning: "print this help" },
  },
  examples: [
    `oncekey verify http://127.0.0.1:4000/v1/invoices --header "Authorization: Bearer $TOKEN" --body '{"customer_id":"cus_1","amount_minor":1200,"currency":"EUR"}'`,
    "oncekey verify https://api.example.com/v1/charges --profile stripe --header-file auth.txt --body-file charge.json",
    "oncekey verify http://127.0.0.1:4000/v1/invoices --body-file invoice.json --dry-run",
  ],
  async run(line) {
    const target = await givenTarget(line);
    const selection = { only: givenCases(line, "only"), skip: givenCases(line, "skip") };
    const chosen = Object.fromEntries(Object.entries(selection).filter(([, ids]) => ids !== undefined));
    const plan = planRun(target, chosen);
    if (line.switches.has("dry-run")) return { exitCode: 0, data: plan, text: planText(target, plan) };
    await prepareFile(line.values.get("junit"));
    announce(target, plan);
    return await untilSignal(async (signal) => {
      const report = await runCases(target, { ...chosen, signal });
      return await reported(report, line.values.get("junit"), signal.aborted);
    });
  },
};

function givenCases({ values }: CommandLine, option: string): string[] | undefined {
  const ids = values.get(option)?.split(",");
  if (ids?.every((id) => caseIds.includes(id)) ?? true) return ids;
  throw new UsageError(`--${option} takes ids of cases with commas between them; --dry-run lists them.`);
}

/** Found out before anything is sent: a report that cannot be kept has cost real requests. */
async function prepareFile(path: string | undefined): Promise<void> {
  if (path === undefined) return;
  try {
    await writeFile(path, "");
  } catch {
    throw new UsageError("The file of --junit cannot be written.");
  }
}

const tell = (line: string) => void process.stderr.write(`oncekey: ${line}\n`);

const LOOPBACK = /^(?:localhost|127(?:\.\d{1,3}){3}|\[::1\])$/;

const isClear = ({ protocol, hostname }: URL): boolean => protocol !== "https:" && !LOOPBACK.test(hostname);

/** Options of the other URLs that are asked in the clear. */
function clearOptions({ count, otherOperation, revocation }: Target): string[] {
  const others = [
    ["--count-url", count?.url],
    ["--other-url", otherOperation?.url],
    ["--revoke-url", revocation?.revoke.url],
    ["--restore-url", revocation?.restore.url],
  ] as const;
  return others.filter(([, url]) => url !== undefined && isClear(url)).map(([option]) => option);
}

function announce(target: Target, { sends, runs }: Plan): void {
  const { url, method } = target;
  const clear = [...(isClear(url) ? ["The URL"] : []), ...clearOptions(target)];
  for (const what of clear) {
    tell(`${what} is neither https nor on this machine: credentials and bodies travel in the clear.`);
  }
  tell(
    `About ${sends} real requests go to ${method} ${url.origin}${url.pathname} and the other URLs that were given. ` +
      `An API that passes carries out about ${runs} of them, one that fails more.`,
  );
}

async function reported(report: RunReport, junitFile: string | undefined, isEnded: boolean): Promise<Report> {
  const isKept = junitFile === undefined || (await isWritten(junitFile, junitXml(report)));
  return { exitCode: exitCodeOf(report, isKept, isEnded), data: report, text: reportText(report) };
}

function exitCodeOf({ counts }: RunReport, isKept: boolean, isEnded: boolean): Report["exitCode"] {
  if (isEnded) return 130;
  if (counts.fail > 0) return 6;
  return isKept ? 0 : 1;
}

/** What was found is printed in any case: it has cost real requests. */
async function isWritten(path: string, text: string): Promise<boolean> {
  try {
    await writeFile(path, text);
    return true;
  } catch {
    tell("The file of --junit could not be written; the report is on standard output alone.");
    return false;
  }
}

const SIGNALS = ["SIGINT", "SIGTERM"] as const;

/** Programs such as npx hand on a signal that the terminal has already sent to all: within this it is the same one. */
const ECHO_MS = 500;

/** The first signal ends the run in order, with its report and what was revoked given back; a second ends the process. */
async function untilSignal<T>(work: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const abort = new AbortController();
  let firstAtMs = 0;
  const end = () => {
    if (abort.signal.aborted && performance.now() - firstAtMs > ECHO_MS) process.exit(130);
    if (abort.signal.aborted) return;
    firstAtMs = performance.now();
    tell("Ended by a signal. What was revoked is being restored; a second signal ends this at once.");
    abort.abort();
  };
  for (const name of SIGNALS) process.on(name, end);
  try {
    return await work(abort.signal);
  } finally {
    for (const name of SIGNALS) process.off(name, end);
  }
}
