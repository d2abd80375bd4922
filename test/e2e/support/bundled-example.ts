import { bundleExample } from "./example-programs.ts";

let bundled: Promise<string> | undefined;

/** The directory with the example's programs of this run (see programs-global.ts). */
export function bundledExample(): Promise<string> {
  bundled ??= askDesk();
  return bundled;
}

async function askDesk(): Promise<string> {
  const port = process.env.ONCEKEY_TEST_PROGRAMS;
  if (port === undefined) return bundleExample();
  const answer = await fetch(`http://127.0.0.1:${port}/`);
  if (!answer.ok) throw new Error(`The example could not be bundled: ${await answer.text()}`);
  return answer.text();
}
