/** A test of a suite, or several of them: one that fails is enough. */
export interface ByTest {
  /** Its file. */
  readonly test: string;
  /** Words that its full name holds (suites first, as vitest joins them); `…` stands for any others. */
  readonly title: string;
}

/** A world of the interleaving explorer. */
export interface ByWorld {
  readonly world: string;
}

/** A campaign, short: its script and options, and words of the check that must fail. */
export interface ByCampaign {
  readonly lab: string;
  readonly options: readonly string[];
  readonly check: string;
}

/** What must notice the break. */
export type Catcher = ByTest | ByWorld | ByCampaign;

/** Source text that stands exactly once in a file, and what stands there in the broken copy. */
export interface Mutation {
  /** Relative to the root. SQL is embedded anew after the change. */
  readonly file: string;
  readonly find: string;
  readonly replace: string;
}

/** A deliberate break of the protocol. */
export interface Canary {
  /** Short and stable: for `--only`. */
  readonly id: string;
  /** What is broken, in the words of the protocol. */
  readonly what: string;
  /** Made together; most breaks need one. */
  readonly edits: readonly Mutation[];
  /** Every one of them must catch it. */
  readonly caughtBy: readonly Catcher[];
}

/** A catcher in one line, for people; the same catcher always gives the same. */
export function catcherName(catcher: Catcher): string {
  if ("test" in catcher) return `${catcher.test}: ${catcher.title}`;
  if ("world" in catcher) return `explore ${catcher.world}`;
  return `${catcher.lab} ${catcher.options.join(" ")}: ${catcher.check}`;
}

/** A test of `test/unit/`. */
export function unit(file: string, title: string): ByTest {
  return { test: `test/unit/${file}.test.ts`, title };
}

/** A test of `test/integration/`. */
export function integration(file: string, title: string): ByTest {
  return { test: `test/integration/${file}.test.ts`, title };
}

/** A case of an exported suite, on one of the implementations that it runs over. */
export function suite(file: string, on: string, name: string): ByTest {
  return { test: `test/conformance/${file}.test.ts`, title: `${on}…${name}` };
}

/** A case of the store suite on the memory store. */
export function memoryCase(name: string): ByTest {
  return suite("stores", ": memory ", name);
}

/** A case of the store suite on PostgreSQL, through node-postgres at its default isolation. */
export function postgresCase(name: string): ByTest {
  return suite("stores", ": postgres through pg ", name);
}
