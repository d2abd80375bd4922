import { userInfo } from "node:os";

const LONGEST = 255;

/** Who runs the command, for the audit. Containers may run under a number that no account has. */
export function accountName(): string {
  try {
    return userInfo().username.slice(0, LONGEST);
  } catch {
    return `uid ${process.getuid?.() ?? "unknown"}`;
  }
}
