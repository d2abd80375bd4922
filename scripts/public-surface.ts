/** The package's public surface, read from its sources: what each subpath exports, with its doc comment. */
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import ts from "typescript";
import { repositoryRoot } from "./check.ts";

/** A name that a subpath exports. */
export interface PublicExport {
  readonly name: string;
  readonly kind: "function" | "type" | "class" | "constant";
  /** The whole doc comment, on one line; empty where there is none. */
  readonly doc: string;
  /** Where it is declared, for complaints. */
  readonly declaredIn: string;
}

/** A subpath of the package, such as `oncekey/postgres`. */
export interface Subpath {
  readonly name: string;
  readonly exports: readonly PublicExport[];
}

/** One option of an options interface. */
export interface Option {
  readonly name: string;
  readonly required: boolean;
  /** Its type as written; a method's parameters and answer. */
  readonly type: string;
  readonly doc: string;
}

/** An exported interface that users fill in. */
export interface OptionsInterface {
  readonly name: string;
  readonly extends: readonly string[];
  readonly doc: string;
  readonly options: readonly Option[];
}

/** All that users can reach. */
export interface PublicSurface {
  readonly subpaths: readonly Subpath[];
  readonly optionsInterfaces: readonly OptionsInterface[];
  /** Types of ours in the signatures of exported functions that users cannot import: `function: type`. */
  readonly unnameable: readonly string[];
}

/** Subpath → source file, as the exports map of package.json says; subpaths without sources (package.json) left out. */
export function exportedSources(): ReadonlyMap<string, string> {
  const manifest = JSON.parse(readFileSync(join(repositoryRoot, "package.json"), "utf8")) as {
    exports: Record<string, string | { "oncekey-source": string }>;
  };
  const sources = new Map<string, string>();
  for (const [subpath, target] of Object.entries(manifest.exports)) {
    if (typeof target === "string") continue;
    sources.set(`oncekey${subpath.slice(1)}`, join(repositoryRoot, target["oncekey-source"]));
  }
  return sources;
}

/** Reads the surface from the sources. Raises an error where an entry file is missing. */
export function readPublicSurface(): PublicSurface {
  const sources = exportedSources();
  const missing = [...sources.values()].filter((file) => !existsSync(file));
  if (missing.length > 0) throw new Error(`package.json exports files that do not exist: ${missing.join(", ")}`);
  const program = ts.createProgram([...sources.values()], compilerOptions());
  const checker = program.getTypeChecker();
  const subpaths: Subpath[] = [];
  const interfaces = new Map<string, OptionsInterface>();
  const everything = new Set<ts.Symbol>();
  for (const [name, file] of sources) {
    const symbols = moduleSymbols(program, checker, file);
    subpaths.push({ name, exports: symbols.map((symbol) => publicExport(symbol, checker)) });
    for (const symbol of symbols) everything.add(symbol);
    for (const declaration of symbols.flatMap(optionsDeclarations)) {
      interfaces.set(declaration.name.text, optionsInterface(declaration, checker));
    }
  }
  const unnameable = [...everything].flatMap((symbol) => hiddenTypes(symbol, everything, checker));
  return { subpaths, optionsInterfaces: [...interfaces.values()], unnameable };
}

function compilerOptions(): ts.CompilerOptions {
  const path = join(repositoryRoot, "tsconfig.json");
  const { config } = ts.readConfigFile(path, ts.sys.readFile) as { config: unknown };
  return ts.parseJsonConfigFileContent(config, ts.sys, repositoryRoot).options;
}

/** The exported symbols of a file, re-exports followed to their declarations, by name. */
function moduleSymbols(program: ts.Program, checker: ts.TypeChecker, file: string): ts.Symbol[] {
  const source = program.getSourceFile(file);
  const module = source === undefined ? undefined : checker.getSymbolAtLocation(source);
  const exported = module === undefined ? [] : checker.getExportsOfModule(module);
  const resolved = exported.map((symbol) =>
    symbol.flags & ts.SymbolFlags.Alias ? checker.getAliasedSymbol(symbol) : symbol,
  );
  return resolved.sort((a, b) => (a.name < b.name ? -1 : 1));
}

function hiddenTypes(symbol: ts.Symbol, exported: ReadonlySet<ts.Symbol>, checker: ts.TypeChecker): string[] {
  const signatures = (symbol.declarations ?? []).filter(ts.isFunctionDeclaration);
  const nodes = signatures.flatMap(({ parameters, type }) => [...parameters, ...(type === undefined ? [] : [type])]);
  const hidden = new Set<string>();
  const visit = (node: ts.Node): void => {
    if (ts.isTypeReferenceNode(node) && isHidden(node.typeName))
      hidden.add(`${symbol.name}: ${node.typeName.getText()}`);
    ts.forEachChild(node, visit);
  };
  const isHidden = (name: ts.EntityName): boolean => {
    const found = checker.getSymbolAtLocation(name);
    if (found === undefined || found.flags & ts.SymbolFlags.TypeParameter) return false;
    const target = found.flags & ts.SymbolFlags.Alias ? checker.getAliasedSymbol(found) : found;
    const file = target.declarations?.[0]?.getSourceFile().fileName ?? "";
    return file.startsWith(join(repositoryRoot, "src")) && !exported.has(target);
  };
  for (const node of nodes) visit(node);
  return [...hidden];
}

function publicExport(symbol: ts.Symbol, checker: ts.TypeChecker): PublicExport {
  const declaration = symbol.declarations?.[0];
  const file = declaration?.getSourceFile().fileName.slice(repositoryRoot.length) ?? "";
  return { name: symbol.name, kind: kindOf(symbol), doc: docOf(symbol, checker), declaredIn: file };
}

function kindOf(symbol: ts.Symbol): PublicExport["kind"] {
  if (symbol.flags & ts.SymbolFlags.Function) return "function";
  if (symbol.flags & ts.SymbolFlags.Class) return "class";
  return symbol.flags & ts.SymbolFlags.Variable ? "constant" : "type";
}

function docOf(symbol: ts.Symbol | undefined, checker: ts.TypeChecker): string {
  const text = ts.displayPartsToString(symbol?.getDocumentationComment(checker) ?? []);
  return text
    .replace(/\{@link ([^}]*)\}/g, "`$1`")
    .replace(/\s+/g, " ")
    .trim();
}

/** Interfaces that users fill in go by these names; a new one is picked up by its name alone. */
function optionsDeclarations(symbol: ts.Symbol): ts.InterfaceDeclaration[] {
  if (!/(Options|Definition|Binding)$/.test(symbol.name)) return [];
  return (symbol.declarations ?? []).filter(ts.isInterfaceDeclaration);
}

function optionsInterface(declaration: ts.InterfaceDeclaration, checker: ts.TypeChecker): OptionsInterface {
  const bases = declaration.heritageClauses?.flatMap((clause) => clause.types.map((type) => type.expression.getText()));
  return {
    name: declaration.name.text,
    extends: bases ?? [],
    doc: docOf(checker.getSymbolAtLocation(declaration.name), checker),
    options: declaration.members.flatMap((member) => optionOf(member, checker)),
  };
}

function optionOf(member: ts.TypeElement, checker: ts.TypeChecker): Option[] {
  if (member.name === undefined) return [];
  const symbol = checker.getSymbolAtLocation(member.name);
  const required = member.questionToken === undefined;
  return [{ name: member.name.getText(), required, type: typeText(member), doc: docOf(symbol, checker) }];
}

function typeText(member: ts.TypeElement): string {
  if (ts.isPropertySignature(member)) return oneLine(member.type?.getText() ?? "unknown");
  if (!ts.isMethodSignature(member)) return oneLine(member.getText());
  const parameters = member.parameters.map((parameter) => parameter.getText()).join(", ");
  return oneLine(`(${parameters}) => ${member.type?.getText() ?? "void"}`);
}

function oneLine(text: string): string {
  return text.replace(/\s+/g, " ");
}
