/**
 * Builds the console's page for a checkout, into console/dist. `--if-needed`: only where it is missing or older than its
 * sources; the example's start asks for that.
 */
import { join } from "node:path";
import { repositoryRoot } from "./check.ts";
import { buildConsolePage, isConsolePageFresh } from "./console-page.ts";

const folder = join(repositoryRoot, "console", "dist");
const isNeeded = !process.argv.includes("--if-needed") || !(await isConsolePageFresh(folder));
if (isNeeded) {
  console.error("Building the console's page (some seconds) …");
  await buildConsolePage(folder);
}
