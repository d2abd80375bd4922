/**
 * The ways of answering that capture has to store and replay exactly. Every framework has a row for each: how it answers
 * that way, or why it cannot.
 */
export const WAYS = [
  "JSON",
  "text",
  "HTML",
  "text beyond ASCII",
  "all 256 bytes",
  "an empty body",
  "no content type",
  "a charset",
  "one end with the body",
  "one end in another encoding",
  "writes in small chunks",
  "writes of text and bytes in turns",
  "a write in latin1",
  "a write in hex",
  "a write in base64",
  "a write in UTF-16",
  "a write of a Uint8Array",
  "a reused buffer",
  "corked writes",
  "an end long after the first write",
  "an answer from a later tick",
  "a pipe",
  "a pipeline",
  "a long stream",
  "a stream of the web",
  "a Response or Blob",
  "a file",
  "a download",
  "a template",
  "negotiated content",
  "gzip by the handler",
  "compression inside of Oncekey",
  "compression outside of Oncekey",
  "a status and Location",
  "a reason phrase",
  "writeHead with an object",
  "writeHead with a flat list",
  "writeHead with pairs",
  "writeHead over earlier headers",
  "flushed headers",
  "headers of several lines",
  "several cookies",
  "a Content-Length of the handler's",
  "validators and caching",
  "trailers",
  "early hints",
  "204",
  "204 with a body that must not be sent",
  "304",
  "a redirect",
  "a refusal of the handler's",
  "a 404 of the handler's",
  "an error that error handling answers",
  "an error of the framework's own",
] as const;

/** The name of a way. */
export type Way = (typeof WAYS)[number];

/** For each way how a framework answers so, or (a text) why it cannot. */
export type WaysOf<Answering> = Readonly<Record<Way, Answering | string>>;

/** What a handler is to say: the same bytes whenever it runs. */
export const TEXT = "first line\nsecond line ".repeat(8);
export const WIDE = "Санкт-Петербург, 東京, \u{1f600} ".repeat(5);
export const BYTES = Uint8Array.from({ length: 256 }, (_, at) => at);
/** Long enough for the recorder to keep it aside. */
export const LONG = Buffer.alloc(700_000, "0123456789abcdef-");
/** A file of the repository, by its path relative to the root. */
export const FILE = "LICENSE";

/** One reason for several ways that a framework lacks. */
export function lacking<Name extends Way>(reason: string, ...names: readonly Name[]): Record<Name, string> {
  return Object.fromEntries(names.map((name) => [name, reason])) as Record<Name, string>;
}
