/** Plants a dead file and a dead export in a small project under our own knip.json: both must be found, nothing else. */
import { execFile } from "node:child_process";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { reportCheck, repositoryRoot } from "./check.ts";
import { inPlantedProject } from "./planted-project.ts";

const files: Readonly<Record<string, string>> = {
  "package.json": JSON.stringify({ name: "planted", type: "module", exports: "./src/index.ts" }),
  "tsconfig.json": JSON.stringify({
    compilerOptions: { module: "NodeNext", allowImportingTsExtensions: true, noEmit: true },
  }),
  "src/index.ts": 'export { used } from "./core/half.ts";\n',
  "src/core/half.ts": "export const used = 1;\nexport const unusedExport = 2;\n",
  "src/core/dead-file.ts": "export const nobody = 1;\n",
};

async function knipReport(folder: string): Promise<string> {
  const knip = join(repositoryRoot, "node_modules/knip/bin/knip.js");
  const run = promisify(execFile)(process.execPath, [knip, "--no-progress", "--no-config-hints"], { cwd: folder });
  return run.then(
    ({ stdout }) => stdout,
    (error: { stdout: string }) => error.stdout,
  );
}

const knipConfig = await readFile(join(repositoryRoot, "knip.json"), "utf8");
const report = await inPlantedProject({ ...files, "knip.json": knipConfig }, knipReport);
const missed = ["dead-file.ts", "unusedExport"].filter((planted) => !report.includes(planted));
const accused = /^used\b/m.test(report) ? ["a used export was called dead"] : [];
const problems = [...missed.map((planted) => `${planted} was not found in:\n${report}`), ...accused];
reportCheck("dead code canary", "both plants found", problems);
