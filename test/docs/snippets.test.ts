import { readFileSync } from "node:fs";
import { join } from "node:path";
import ts from "typescript";
import { describe, expect, it } from "vitest";
import { codeBlocks, type Page, pages, root } from "./support/markdown.ts";

/**
 * What snippets may use without declaring it; a snippet's own declaration of the same name wins. The file is no
 * TypeScript file by its name, or its globals would be known to the whole project.
 */
const context = readFileSync(join(root, "test/docs/support/snippet-context.ts.txt"), "utf8");

function compilerOptions(): ts.CompilerOptions {
  const path = join(root, "tsconfig.json");
  const { config } = ts.readConfigFile(path, ts.sys.readFile) as { config: unknown };
  return ts.parseJsonConfigFileContent(config, ts.sys, root).options;
}

/** Virtual file name → its text: each block a module of its own, on the lines it has in its page. */
function snippetFiles(all: readonly Page[]): Map<string, string> {
  const files = new Map([[join(root, "test/docs/snippet-context.ts"), context]]);
  for (const { path, text } of all) {
    for (const block of codeBlocks(text).filter(({ language }) => language === "ts")) {
      const name = join(root, "test/docs", `${path.replaceAll("/", "-")}-${block.line}.ts`);
      files.set(name, `${"\n".repeat(block.line - 1)}${block.text}\nexport {};\n`);
    }
  }
  return files;
}

/** Complaints of the compiler about the blocks marked `ts`, with page and line. */
function complaints(all: readonly Page[]): string[] {
  const files = snippetFiles(all);
  const options = compilerOptions();
  const host = ts.createCompilerHost(options);
  const { fileExists, readFile, getSourceFile } = host;
  host.fileExists = (name) => files.has(name) || fileExists(name);
  host.readFile = (name) => files.get(name) ?? readFile(name);
  host.getSourceFile = (name, target, ...rest) => {
    const text = files.get(name);
    return text === undefined ? getSourceFile(name, target, ...rest) : ts.createSourceFile(name, text, target);
  };
  const program = ts.createProgram([...files.keys()], options, host);
  const sources = [...files.keys()].map((name) => program.getSourceFile(name));
  const found = sources.flatMap((source) => ts.getPreEmitDiagnostics(program, source));
  return found.map((diagnostic) => describeDiagnostic(diagnostic));
}

function describeDiagnostic({ file, start, messageText }: ts.Diagnostic): string {
  const line = file === undefined ? 0 : file.getLineAndCharacterOfPosition(start ?? 0).line + 1;
  return `${file?.fileName.slice(root.length)}:${line} ${ts.flattenDiagnosticMessageText(messageText, "\n")}`;
}

describe("TypeScript snippets of the documentation", () => {
  it("type-check against the package's public names", () => {
    expect(snippetFiles(pages()).size).toBeGreaterThan(5);
    expect(complaints(pages())).toEqual([]);
  }, 120_000);

  it("are found wrong when they are (canary)", () => {
    const text = '# A page\n\n```ts\nimport { noSuchExport } from "oncekey";\nnoSuchExport();\n```\n';
    expect(complaints([{ path: "README.md", text }]).join()).toContain("noSuchExport");
  }, 120_000);
});
