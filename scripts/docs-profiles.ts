import type { Settings } from "../src/engine/settings.ts";
import { DEFAULTS } from "../src/engine/settings.ts";
import type { Profile } from "../src/http/profile.ts";
import { profiles } from "../src/http/profiles/index.ts";
import { markdownTable } from "./markdown-table.ts";

const SECOND = 1_000;
const units: readonly (readonly [string, number])[] = [
  ["d", 86_400 * SECOND],
  ["h", 3_600 * SECOND],
  ["min", 60 * SECOND],
  ["s", SECOND],
];

/** A duration as people say it: 24 h, 7 d, 1.5 s. */
function duration(ms: number): string {
  const [unit, size] = units.find(([, size]) => ms >= size * 2 || (ms >= size && size < 86_400 * SECOND)) ?? ["ms", 1];
  return `${ms / size} ${unit}`;
}

function setting<Name extends keyof Profile["defaults"]>(
  { defaults }: Profile,
  name: Name,
): NonNullable<Settings[Name]> {
  return (defaults[name] ?? DEFAULTS[name]) as NonNullable<Settings[Name]>;
}

function placeOf({ key: { place } }: Profile): string {
  return place.in === "header" ? `header \`${place.name}\`` : place.names.map((name) => `\`${name}\``).join(", ");
}

const heads: Readonly<Record<string, (profile: Profile) => string>> = {
  profile: ({ name }) => (name === "ietf" ? `[\`${name}\`](http.md)` : `[\`${name}\`](dialects/${name}.md)`),
  "the key travels in": placeOf,
  "longest key": (profile) => String(setting(profile, "maxKeyLength")),
  required: ({ key }) => (key.required ? "yes" : "no"),
  "keys span": (profile) => (setting(profile, "keySpace") === "account" ? "the account" : "one operation"),
  compared: (profile) => (setting(profile, "compare") === "none" ? "nothing" : "the request"),
  "after a rejection": (profile) => (setting(profile, "afterFailure") === "runAgain" ? "runs again" : "replayed"),
  retention: (profile) => duration(setting(profile, "retentionMs")),
  "a duplicate waits": (profile) => duration(setting(profile, "waitMs")),
  mismatch: (profile) => refusalOf(profile, "idempotency_payload_mismatch"),
  "still running": (profile) => refusalOf(profile, "idempotency_in_progress"),
  "replay marked by": ({ replayMarker }) => (replayMarker === null ? "–" : `\`${replayMarker[0]}\``),
};

function refusalOf(profile: Profile, code: keyof Profile["refusals"]): string {
  if (code === "idempotency_payload_mismatch" && setting(profile, "compare") === "none") return "–";
  const { status, error } = profile.refusals[code];
  return `${status} \`${error}\``;
}

/** The table of docs/dialects.md: what each profile says, one row a profile. */
export function profilesTable(): string {
  return markdownTable(
    Object.keys(heads),
    profiles.map((profile) => Object.values(heads).map((cell) => cell(profile))),
  );
}
