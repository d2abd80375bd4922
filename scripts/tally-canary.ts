/** Plants tests that fail in every way a test can, and checks that the count of `npm test` sees each of them. */
import { reportCheck } from "./check.ts";
import { inPlantedProject } from "./planted-project.ts";
import { tallyLine } from "./tally.ts";
import { runVitest } from "./vitest-tally.ts";

const head = 'import { beforeAll, describe, expect, it } from "vitest";\n';

const files: Readonly<Record<string, string>> = {
  "package.json": '{ "type": "module" }',
  "vitest.config.ts": 'export default { test: { include: ["test/**/*.test.ts"], pool: "forks" } };\n',
  "test/unit/some.test.ts": `${head}
    it("passes", () => {});
    it("fails", () => expect(1).toBe(2));
    it("skips", ({ skip }) => skip("no server here"));\n`,
  "test/unit/broken-file.test.ts": `${head}throw new Error("planted");\nit("never runs", () => {});\n`,
  "test/unit/broken-suite.test.ts": `${head}
    describe("suite", () => {
      beforeAll(() => { throw new Error("planted"); });
      it("is skipped by vitest", () => {});
    });\n`,
  "test/unit/stray.test.ts": `${head}
    it("leaves a rejection behind", async () => {
      void Promise.reject(new Error("planted"));
      await new Promise((resolve) => setTimeout(resolve, 20));
    });\n`,
};

const filters = ["test/unit/", "test/missing-layer/"];
process.env.CI = "false";
const lenient = await inPlantedProject(files, (folder) => runVitest(filters, folder, [{}]));
process.env.CI = "true";
const strict = await inPlantedProject(files, (folder) => runVitest(filters, folder, [{}]));

const problems: string[] = [];
// Failed: the test, the file, the suite, the stray rejection, the layer without files. In CI both skips as well.
if (tallyLine(lenient) !== "2 passed, 5 failed, 2 skipped") problems.push(`counted ${tallyLine(lenient)}`);
if (tallyLine(strict) !== "2 passed, 7 failed") problems.push(`counted ${tallyLine(strict)} with CI=true`);
if (!lenient.skips.some((skip) => skip.includes("no server here"))) problems.push("the reason of a skip was lost");
process.exitCode = 0;
reportCheck("tally canary", "every planted failure was counted", problems);
