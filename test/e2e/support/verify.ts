import type { Lab, Program } from "./crash-lab.ts";

interface CaseReport {
  readonly id: string;
  readonly verdict: string;
  readonly seen: string;
}

/** What a run of the command found. */
export interface Verified {
  readonly code: string;
  /** Whole cases, so that a failed expectation says what was seen. */
  readonly failed: readonly CaseReport[];
  readonly passed: readonly string[];
  readonly unclear: readonly string[];
  readonly output: string;
}

const bearer = (token: string) => `Authorization: Bearer ${token}`;
const OWN = ["--header", bearer("sk_test_acme")];
const REVOKED = '{"token":"sk_test_acme"}';
/** A body that the invoices take. */
export const INVOICE = '{"customer_id":"cus_1","amount_minor":1200,"currency":"EUR","metadata":{"order":"o-1"}}';
/** A body that the charges take. */
export const CHARGE = '{"amount_minor":1200,"currency":"EUR","source":"tok_visa"}';

/** Runs the command with everything that it can be told about the example. */
export async function verify(
  lab: Lab,
  { url }: Program,
  path: string,
  body: string,
  more: readonly string[] = [],
): Promise<Verified> {
  const other = path === "/v1/invoices" ? ["/v1/charges", CHARGE] : ["/v1/invoices", INVOICE];
  const args = [
    ...["verify", url + path, ...OWN, "--body", body, "--json", "--slow-header", "X-Lab-Delay-Ms: 250"],
    ...["--other-header", bearer("sk_test_globex"), "--other-url", url + other[0], "--other-url-body", `${other[1]}`],
    ...["--revoke-url", `${url}/lab/revoke`, "--restore-url", `${url}/lab/restore`, "--revoke-body", REVOKED],
    ...(more.includes("--count-url") ? more : [...more, "--count-url", url + path]),
  ];
  const { code, output } = await lab.command(args);
  const report = JSON.parse(output.slice(output.indexOf("\n{") + 1)) as { readonly cases: readonly CaseReport[] };
  const by = (verdict: string) => report.cases.filter((each) => each.verdict === verdict);
  const idsOf = (verdict: string) => by(verdict).map(({ id }) => id);
  return { code, failed: by("fail"), passed: idsOf("pass"), unclear: idsOf("cannot-tell"), output };
}

/** What a run finds where nothing fails and everything can be told. */
export const ALL_PASSED = { code: "0", failed: [], unclear: [] };
