import { OncekeyError } from "../../core/errors.ts";
import type { Profile } from "../profile.ts";
import { ietf } from "./ietf.ts";

const profiles: readonly Profile[] = [ietf];

const NAMES = profiles.map((profile) => profile.name);

/** The dialect of that name. Raises `oncekey_profile_unknown`. */
export function profileNamed(name: string): Profile {
  const profile = profiles.find((candidate) => candidate.name === name);
  if (profile !== undefined) return profile;
  throw new OncekeyError(
    "oncekey_profile_unknown",
    `There is no HTTP profile ${JSON.stringify(name)}. Nothing was bound. Set profile to one of: ${NAMES.join(", ")}.`,
  );
}
