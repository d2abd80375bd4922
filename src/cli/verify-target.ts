import { readFile } from "node:fs/promises";
import {
  type Address,
  type Dialect,
  dialects,
  type HeaderLine,
  pathOfPointer,
  type Target,
  withKeyMember,
} from "../verify/index.ts";
import { type CommandLine, named, UsageError } from "./command-line.ts";
import { givenDuration } from "./given.ts";

const DEFAULT_TIMEOUT_MS = 30_000;

/** The target that the options describe. Raises {@link UsageError}; its messages repeat no value. */
export async function givenTarget(line: CommandLine): Promise<Target> {
  const lines = [...(await fileLines(line)), ...headerLines(line, "header")];
  const body = await givenBody(line);
  const isType = ([name]: HeaderLine) => name.toLowerCase() === "content-type";
  const type = line.values.get("content-type") ?? lines.find(isType)?.[1] ?? "application/json";
  const dialect = givenDialect(line);
  if (dialect.key.place.in === "member" && body === null) {
    throw new UsageError("The dialect's keys travel in the body: give --body or --body-file.");
  }
  const contentType = body === null ? null : type;
  const others = givenOthers(line);
  checkMember(dialect, contentType, [body, others.otherBody, others.refusedBody, others.otherOperation?.body ?? null]);
  return {
    url: urlOf(line.operands[0] ?? "", "url"),
    method: givenMethod(line),
    headers: lines.filter((each) => !isType(each)),
    body,
    contentType,
    dialect,
    timeoutMs: givenDuration(line, "timeout") ?? DEFAULT_TIMEOUT_MS,
    count: givenCount(line),
    ...others,
    revocation: givenRevocation(line),
    retentionMs: givenDuration(line, "retention") ?? null,
  };
}

/** Every body that is sent must be able to hold the key where keys are members. */
function checkMember({ key }: Dialect, contentType: string | null, bodies: readonly (Buffer | null)[]): void {
  const { place } = key;
  if (place.in !== "member") return;
  const isHolding = (body: Buffer | null) =>
    body === null || withKeyMember({ body, contentType }, place.name, "key") !== null;
  if (bodies.every(isHolding)) return;
  throw new UsageError("The dialect's keys travel in the body: each body must be a JSON object or a well-formed form.");
}

type Others = Pick<
  Target,
  | "otherHeaders"
  | "otherOperation"
  | "otherBody"
  | "refusedBody"
  | "numberPath"
  | "revokedHeaders"
  | "lateHeaders"
  | "slowHeaders"
>;

function givenOthers(line: CommandLine): Others {
  const otherUrl = givenUrl(line, "other-url");
  const pointer = line.values.get("number-pointer");
  return {
    otherHeaders: line.lists.has("other-header") ? headerLines(line, "other-header") : null,
    otherOperation: otherUrl === null ? null : { url: otherUrl, body: bytesOf(line, "other-url-body") },
    otherBody: bytesOf(line, "other-body"),
    refusedBody: bytesOf(line, "refused-body"),
    numberPath: pointer === undefined ? null : pointerOf(pointer, "number-pointer"),
    revokedHeaders: line.lists.has("revoked-header") ? headerLines(line, "revoked-header") : null,
    lateHeaders: headerLines(line, "late-header"),
    slowHeaders: headerLines(line, "slow-header"),
  };
}

function givenMethod({ values }: CommandLine): string {
  const method = (values.get("method") ?? "POST").toUpperCase();
  if (/^[A-Z]{1,20}$/.test(method)) return method;
  throw new UsageError("--method must be a method such as POST or PATCH.");
}

function urlOf(text: string, what: string): URL {
  const url = URL.canParse(text) ? new URL(text) : null;
  if (url === null || !/^https?:$/.test(url.protocol))
    throw new UsageError(`The ${what} must be an http or https URL.`);
  if (url.username !== "" || url.password !== "") {
    throw new UsageError(`The ${what} must hold no credentials: give them by --header or --header-file.`);
  }
  url.hash = "";
  return url;
}

function givenUrl({ values }: CommandLine, option: string): URL | null {
  const given = values.get(option);
  return given === undefined ? null : urlOf(given, `value of --${option}`);
}

const HEADER = /^([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*([\t\x20-\x7e\x80-\xff]*)$/;

/** What the kit itself says of each connection and body. */
const OWN = new Set(["host", "connection", "content-length", "transfer-encoding", "expect"]);

function headerLine(text: string, from: string): HeaderLine {
  const [, name, value = ""] = HEADER.exec(text) ?? [];
  if (name === undefined) throw new UsageError(`${from} must be "Name: value".`);
  if (OWN.has(name.toLowerCase())) throw new UsageError(`${from} must not hold ${named("the header", name)}.`);
  return [name, value.trimEnd()];
}

function headerLines({ lists }: CommandLine, option: string): HeaderLine[] {
  return (lists.get(option) ?? []).map((text) => headerLine(text, `--${option}`));
}

async function fileLines(line: CommandLine): Promise<HeaderLine[]> {
  const bytes = await givenFile(line, "header-file");
  const texts = (bytes?.toString("latin1") ?? "").split(/\r?\n/).filter((text) => text !== "");
  return texts.map((text) => headerLine(text, "Each line of the --header-file"));
}

async function givenFile({ values }: CommandLine, option: string): Promise<Buffer | null> {
  const path = values.get(option);
  if (path === undefined) return null;
  try {
    return await readFile(path);
  } catch {
    throw new UsageError(`The file of --${option} cannot be read.`);
  }
}

async function givenBody(line: CommandLine): Promise<Buffer | null> {
  if (line.values.has("body") && line.values.has("body-file")) {
    throw new UsageError("Give --body or --body-file, not both.");
  }
  return bytesOf(line, "body") ?? (await givenFile(line, "body-file"));
}

function bytesOf({ values }: CommandLine, option: string): Buffer | null {
  const text = values.get(option);
  return text === undefined ? null : Buffer.from(text);
}

function givenDialect(line: CommandLine): Dialect {
  const { values, switches } = line;
  const dialect = dialects.get(values.get("profile") ?? "ietf");
  if (dialect === undefined) throw new UsageError(`--profile must be one of ${[...dialects.keys()].join(", ")}.`);
  const form = values.get("key-form") ?? dialect.key.form;
  if (form !== "quoted" && form !== "bare") throw new UsageError("--key-form must be quoted or bare.");
  const required = switches.has("key-optional") ? false : dialect.key.required;
  return { ...dialect, key: { ...dialect.key, place: givenPlace(line, dialect), form, required } };
}

function givenPlace({ values }: CommandLine, { key }: Dialect): Dialect["key"]["place"] {
  const header = values.get("key-header");
  const member = values.get("key-member");
  if (header !== undefined && member !== undefined)
    throw new UsageError("Give --key-header or --key-member, not both.");
  if (member !== undefined) return { in: "member", name: member };
  if (header === undefined) return key.place;
  if (HEADER.test(`${header}: `) && !OWN.has(header.toLowerCase())) return { in: "header", name: header };
  throw new UsageError("--key-header must be the name of a header.");
}

function pointerOf(text: string, option: string): readonly string[] {
  const path = pathOfPointer(text);
  if (path === null) throw new UsageError(`--${option} must be a JSON Pointer such as /data.`);
  return path;
}

function givenCount(line: CommandLine): Target["count"] {
  const url = givenUrl(line, "count-url");
  const pointer = line.values.get("count-pointer");
  if (url === null && pointer !== undefined) throw new UsageError("--count-pointer belongs to --count-url.");
  return url === null ? null : { url, path: pointerOf(pointer ?? "/data", "count-pointer") };
}

function givenRevocation(line: CommandLine): { readonly revoke: Address; readonly restore: Address } | null {
  const revoke = givenUrl(line, "revoke-url");
  const restore = givenUrl(line, "restore-url");
  if (revoke === null && restore === null) return null;
  if (revoke === null || restore === null) {
    // Credentials that were taken away by a test must come back.
    throw new UsageError("--revoke-url and --restore-url belong together.");
  }
  const body = bytesOf(line, "revoke-body");
  return { revoke: { url: revoke, body }, restore: { url: restore, body: bytesOf(line, "restore-body") ?? body } };
}
