import { readFile } from "node:fs/promises";
import type { EncryptionKey } from "../core/cipher.ts";
import { type CommandLine, type OptionTable, UsageError } from "./command-line.ts";

/** Names the keys: never as an argument, which others can see. */
const VARIABLE = "ONCEKEY_ENCRYPTION_KEYS";

/** The option of commands that open what is stored. */
export const keyOptions: OptionTable = {
  "keys-file": { value: "FILE", meaning: `the encryption keys, in place of ${VARIABLE}` },
};

const FORM = "<id>:<32 bytes in base64>, newest first, separated by commas or line feeds";

/**
 * The ring of encryption keys: from the file of `--keys-file`, else from ONCEKEY_ENCRYPTION_KEYS; empty where there is
 * neither. Raises {@link UsageError}; the message tells which key is wrong by its place and never repeats anything.
 */
export async function givenKeys({ values }: CommandLine, environment: NodeJS.ProcessEnv): Promise<EncryptionKey[]> {
  const path = values.get("keys-file");
  if (path === undefined) return parseKeys(environment[VARIABLE] ?? "", VARIABLE);
  const text = await readFile(path, "utf8").catch((error: NodeJS.ErrnoException) => {
    throw new UsageError(`The file of --keys-file cannot be read (${error.code ?? error.name}).`);
  });
  const keys = parseKeys(text, "The file of --keys-file");
  if (keys.length === 0) throw new UsageError(`The file of --keys-file holds no key. Write ${FORM}.`);
  return keys;
}

/** As {@link givenKeys}, where the command cannot do without. */
export async function neededKeys(line: CommandLine, environment: NodeJS.ProcessEnv): Promise<EncryptionKey[]> {
  const keys = await givenKeys(line, environment);
  if (keys.length > 0) return keys;
  throw new UsageError(`No encryption keys are given. Set ${VARIABLE} (or give --keys-file) to ${FORM}.`);
}

function parseKeys(text: string, source: string): EncryptionKey[] {
  const items = text.split(/[\s,]+/).filter((item) => item !== "");
  const keys = items.map((item, index) => parseKey(item) ?? wrong(source, `key ${index + 1} is not of that form`));
  const ids = new Set(keys.map(({ id }) => id));
  if (ids.size < keys.length) wrong(source, "two keys have one id");
  return keys;
}

function wrong(source: string, what: string): never {
  throw new UsageError(`${source} is not a list of encryption keys: ${what}. Write ${FORM}; ids are 1 to 255.`);
}

/** Padding may be missing, and the alphabet be that of URLs (RFC 4648 §5): both are how secret stores print them. */
function parseKey(item: string): EncryptionKey | null {
  const [, digits = "", base64 = ""] = /^(\d{1,3}):([A-Za-z0-9+/_-]{43}=?)$/.exec(item) ?? [];
  const id = Number(digits);
  const key = new Uint8Array(Buffer.from(base64, "base64"));
  return id >= 1 && id <= 255 && key.length === 32 ? { id, key } : null;
}
