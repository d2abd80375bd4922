import { noteAction } from "../../stores/postgres/operator/audit.ts";
import { refusalOf } from "../failures.ts";
import type { Permitted } from "../operator.ts";
import type { ConsoleParts } from "../parts.ts";
import type { Who } from "../sessions.ts";
import { packageVersion } from "../version.ts";

/** What the page is told of who works with it. */
export function sessionView({ operator, csrf, signedIn, endsAt }: Who) {
  return { operator, csrf, signedIn, endsAt, version: packageVersion() };
}

/** Notes that somebody signed in. A role that may not write the audit only looks, and what it looks at is masked. */
export async function noteSignIn({ database, limits }: ConsoleParts, { name, tenant }: Permitted): Promise<void> {
  if (limits.readOnly) return;
  try {
    await database.change((ask) => noteAction(ask, { action: "sign_in", by: name, tenant, note: null }));
  } catch (error) {
    if (refusalOf(error)?.code !== "console_role_lacks") throw error;
  }
}
