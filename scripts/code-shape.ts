/**
 * Measures the shape of the code (docs/architecture.md): function and file lengths over src/, examples/ and console/, and the few
 * forms that the linter cannot see. Ends with a canary of its own: planted code that must be caught.
 */
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import ts from "typescript";
import { reportCheck, repositoryRoot } from "./check.ts";

interface SourceText {
  readonly path: string;
  readonly text: string;
}

interface MeasuredFunction {
  readonly name: string;
  readonly lines: number;
}

interface FileShape {
  readonly path: string;
  readonly lines: number;
  readonly functions: readonly MeasuredFunction[];
  /** Lines that use an `import("…")` type: the linter's import fence does not see those. */
  readonly importTypes: readonly number[];
}

const limits = { functionP90: 25, functionMax: 60, file: 300, adapter: 80, driver: 60 };

function measure({ path, text }: SourceText): FileShape {
  const source = ts.createSourceFile(path, text, ts.ScriptTarget.ESNext, true);
  const line = (position: number) => source.getLineAndCharacterOfPosition(position).line + 1;
  const functions: MeasuredFunction[] = [];
  const importTypes: number[] = [];
  const visit = (node: ts.Node): void => {
    if (ts.isImportTypeNode(node)) importTypes.push(line(node.getStart()));
    if (ts.isFunctionLike(node) && "body" in node && node.body !== undefined) {
      const start = line(node.getStart());
      functions.push({ name: `${functionName(node)} at ${path}:${start}`, lines: line(node.getEnd()) - start + 1 });
    }
    ts.forEachChild(node, visit);
  };
  visit(source);
  return { path, lines: text.trimEnd().split("\n").length, functions, importTypes };
}

function functionName(node: ts.SignatureDeclaration): string {
  if (node.name !== undefined) return node.name.getText();
  return ts.isVariableDeclaration(node.parent) ? node.parent.name.getText() : "a function";
}

function fileLimit(path: string): number {
  if (/^src\/adapters\/[^_]/.test(path)) return limits.adapter;
  return path.startsWith("src/drivers/") ? limits.driver : limits.file;
}

/** The value below which nine tenths of the sorted numbers lie (nearest rank). */
function percentile90(sorted: readonly number[]): number {
  return sorted[Math.max(0, Math.ceil(sorted.length * 0.9) - 1)] ?? 0;
}

function judge(shapes: readonly FileShape[]): { figures: string; problems: string[] } {
  const functions = shapes.flatMap((shape) => shape.functions);
  const lengths = functions.map(({ lines }) => lines).sort((a, b) => a - b);
  const p90 = percentile90(lengths);
  const problems = [
    ...functions
      .filter(({ lines }) => lines > limits.functionMax)
      .map(({ name, lines }) => `${name} has ${lines} lines, the limit is ${limits.functionMax}`),
    ...shapes
      .filter(({ path, lines }) => lines > fileLimit(path))
      .map(({ path, lines }) => `${path} has ${lines} lines, the limit is ${fileLimit(path)}`),
    ...shapes.flatMap(({ path, importTypes }) =>
      importTypes.map((at) => `${path}:${at} names a type by import("…"), which the import fence cannot see`),
    ),
  ];
  if (p90 > limits.functionP90) problems.push(`p90 of function length is ${p90}, the limit is ${limits.functionP90}`);
  const median = lengths[Math.floor(lengths.length / 2)] ?? 0;
  const figures = `${shapes.length} files, ${lengths.length} functions; length median ${median}, p90 ${p90}, longest ${lengths.at(-1) ?? 0}`;
  return { figures, problems };
}

async function sources(folder: string): Promise<SourceText[]> {
  const entries = await readdir(join(repositoryRoot, folder), { recursive: true, withFileTypes: true });
  const isSource = (name: string) => /\.tsx?$/.test(name) && !name.endsWith(".gen.ts");
  // Projects of their own among the examples and tests have packages and builds of their own.
  const isForeign = (path: string) => /\/(node_modules|\.next|\.output|generated|dist)(\/|$)/.test(path);
  const files = entries.filter((entry) => entry.isFile() && isSource(entry.name) && !isForeign(entry.parentPath));
  const paths = files.map((entry) => join(entry.parentPath, entry.name).slice(repositoryRoot.length)).sort();
  return Promise.all(paths.map(async (path) => ({ path, text: await readFile(join(repositoryRoot, path), "utf8") })));
}

/** What the judge must say about planted code; an answer it fails to give is a problem. */
function canary(): string[] {
  const long = (lines: number) => `export function f() {\n${"  g();\n".repeat(lines - 2)}}\n`;
  const plants: readonly [SourceText, RegExp][] = [
    [{ path: "src/core/a.ts", text: long(61) }, /f at src\/core\/a\.ts:1 has 61 lines/],
    [{ path: "src/core/a.ts", text: long(26) }, /p90 of function length is 26/],
    [{ path: "src/core/a.ts", text: "//\n".repeat(301) }, /has 301 lines, the limit is 300/],
    [{ path: "src/adapters/a.ts", text: "//\n".repeat(81) }, /the limit is 80/],
    [{ path: "src/drivers/a.ts", text: "//\n".repeat(61) }, /the limit is 60/],
    [{ path: "src/core/a.ts", text: 'type A = import("../http/a.ts").A;\n' }, /import fence cannot see/],
  ];
  const fitting = judge([measure({ path: "src/core/a.ts", text: long(25) })]).problems;
  const missed = plants.filter(([plant, expected]) => !judge([measure(plant)]).problems.some((p) => expected.test(p)));
  return [...fitting, ...missed.map(([, expected]) => `canary: planted code was not caught (${expected})`)];
}

const measured = (await Promise.all(["src", "examples", "console"].map(sources))).flat().map(measure);
const { figures, problems } = judge(measured);
reportCheck("code shape", figures, [...problems, ...canary()]);
