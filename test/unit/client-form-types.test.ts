import { join, resolve } from "node:path";
import ts from "typescript";
import { describe, expect, it } from "vitest";

// The form helper matches the browser's form by structure; the project is compiled without the browser's types, so that they
// are asked here: does the real thing fit?

const ROOT = resolve(import.meta.dirname, "..", "..");

/** Complaints about a script of a page, compiled with the browser's types and without Node's. */
function complaints(text: string): string[] {
  const path = join(ROOT, "test", "unit", "page-snippet.ts");
  const options: ts.CompilerOptions = {
    target: ts.ScriptTarget.ES2023,
    lib: ["lib.es2023.d.ts", "lib.dom.d.ts", "lib.dom.iterable.d.ts"],
    module: ts.ModuleKind.ESNext,
    moduleResolution: ts.ModuleResolutionKind.Bundler,
    customConditions: ["oncekey-source"],
    allowImportingTsExtensions: true,
    types: [],
    strict: true,
    exactOptionalPropertyTypes: true,
    noEmit: true,
    skipLibCheck: true,
  };
  const host = ts.createCompilerHost(options);
  const { fileExists, readFile, getSourceFile } = host;
  host.fileExists = (name) => name === path || fileExists(name);
  host.readFile = (name) => (name === path ? text : readFile(name));
  host.getSourceFile = (name, target, ...rest) =>
    name === path ? ts.createSourceFile(name, text, target) : getSourceFile(name, target, ...rest);
  const program = ts.createProgram([path], options, host);
  const found = ts.getPreEmitDiagnostics(program, program.getSourceFile(path));
  return found.map(({ messageText }) => ts.flattenDiagnosticMessageText(messageText, "\n"));
}

const page = (form: string) => `
  import { createClient } from "oncekey/client";
  import { submissionForm } from "oncekey/client/form";
  import { indexedDbStorage } from "oncekey/client/indexeddb";
  const client = createClient({ storage: indexedDbStorage() });
  submissionForm(${form}, {
    client,
    request: (fields) => ({ url: "/v1/charges", json: { amount: Number(fields.get("amount")) } }),
    onResult(result) {
      if (result.kind === "succeeded") document.body.textContent = result.response.text();
    },
  });
`;

describe("submissionForm with the browser's own types", () => {
  it("takes a form of the page", () => {
    expect(complaints(page("document.forms[0]!"))).toEqual([]);
    expect(complaints(page('document.querySelector<HTMLFormElement>("#checkout")!'))).toEqual([]);
  }, 120_000);

  it("takes no other element, and no form that may not be there", () => {
    expect(complaints(page("document.body")).join()).toContain("elements");
    expect(complaints(page('document.querySelector("form")')).join()).toContain("null");
  }, 120_000);
});
