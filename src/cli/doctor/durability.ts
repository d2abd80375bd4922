import { type Check, type Finding, seen, textOf } from "./check.ts";

/** Settings of the server under which a commit that was answered can be lost, and what each is called for. */
const SETTINGS: readonly (readonly [name: string, severity: Finding["severity"], why: string, fix: string])[] = [
  [
    "fsync",
    "error",
    "A crash of the machine can lose or break everything, claims and outcomes included.",
    "ALTER SYSTEM SET fsync = on; SELECT pg_reload_conf();",
  ],
  [
    "full_page_writes",
    "warning",
    "A crash in the middle of a write can leave a page that is half old and half new, unless the disk rules that out.",
    "ALTER SYSTEM SET full_page_writes = on; SELECT pg_reload_conf();",
  ],
  [
    "synchronous_commit",
    "error",
    "A crash of the server forgets the last commits, though they were answered: what they did is done again.",
    "ALTER SYSTEM RESET synchronous_commit; SELECT pg_reload_conf(); -- and ALTER ROLE or ALTER DATABASE … RESET, where it is set there",
  ],
];

/** Whether a commit that was answered stays. */
export const durabilityCheck: Check = {
  name: "durability",
  needs: "server",
  async look({ sql }) {
    const columns = SETTINGS.map(([name]) => `current_setting('${name}') AS ${name}`);
    const [row] = await sql(`SELECT ${columns.join(", ")}`);
    const findings = SETTINGS.filter(([name]) => textOf(row, name) === "off").map(
      ([name, severity, why, fix]): Finding => ({ severity, what: `${name} is off.`, why, fix }),
    );
    return seen(SETTINGS.map(([name]) => `${name} ${textOf(row, name)}`).join(", "), findings);
  },
};
