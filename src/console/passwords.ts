import { randomBytes, scrypt, timingSafeEqual } from "node:crypto";
import { OncekeyError } from "../core/errors.ts";
import type { Operator } from "./operator.ts";

/** An operator who signs in at the console itself. */
export interface ConsoleUser extends Operator {
  /** What {@link hashPassword} gave for the password. */
  readonly passwordHash: string;
}

/** scrypt's parameters: 16 MiB and some 50 ms of one core (RFC 7914 §2). */
const COST = { N: 16_384, r: 8, p: 1 } as const;
const SALT_LENGTH = 16;
const HASH_LENGTH = 32;
const SHORTEST = 12;
const LONGEST = 1_024;

const FORM = /^scrypt:16384:8:1:([A-Za-z0-9_-]{22}):([A-Za-z0-9_-]{43})$/;

function derived(password: string, salt: Uint8Array): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    scrypt(password.normalize("NFC"), salt, HASH_LENGTH, COST, (error, hash) =>
      error === null ? resolve(hash) : reject(error),
    );
  });
}

/**
 * The form in which a password is given to `createConsole`: a salted scrypt digest. Raises `oncekey_config_invalid` for one
 * of less than 12 or more than 1,024 characters.
 */
export async function hashPassword(password: string): Promise<string> {
  if (typeof password !== "string" || password.length < SHORTEST || password.length > LONGEST) {
    throw new OncekeyError(
      "oncekey_config_invalid",
      `A console password has ${SHORTEST} to ${LONGEST} characters. Nothing was stored; choose a longer one, at random.`,
    );
  }
  const salt = randomBytes(SALT_LENGTH);
  const hash = await derived(password, salt);
  return `scrypt:16384:8:1:${salt.toString("base64url")}:${hash.toString("base64url")}`;
}

/** Compared with where there is no such user, so that the time of the answer does not tell who there is. */
const NOBODY = `scrypt:16384:8:1:${"A".repeat(22)}:${"A".repeat(43)}`;

/** The user whose name and password these are; `null`: nobody's. Takes as long whether the name exists or not. */
export async function userOf(
  users: readonly ConsoleUser[],
  name: string,
  password: string,
): Promise<ConsoleUser | null> {
  if (password.length > LONGEST) return null;
  const user = users.find((known) => known.name === name);
  const [, salt = "", hash = ""] = FORM.exec(user?.passwordHash ?? NOBODY) ?? [];
  const given = await derived(password, Buffer.from(salt, "base64url"));
  const isRight = timingSafeEqual(given, Buffer.from(hash, "base64url"));
  return isRight && user !== undefined ? user : null;
}

/** Raises `oncekey_config_invalid` where a list of users cannot be one. */
export function checkUsers(users: readonly ConsoleUser[]): void {
  const names = new Set(users.map(({ name }) => name));
  const isWhole = Array.isArray(users) && users.length > 0 && names.size === users.length;
  if (isWhole && users.every(({ passwordHash }) => typeof passwordHash === "string" && FORM.test(passwordHash))) return;
  throw new OncekeyError(
    "oncekey_config_invalid",
    "passwords is a list of users with names of their own, each with a passwordHash as hashPassword() gives it. Nothing was started.",
  );
}
