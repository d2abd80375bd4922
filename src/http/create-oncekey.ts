import { createEngine, type Oncekey } from "../engine/oncekey.ts";
import type { OncekeyOptions } from "../engine/settings.ts";
import { profileNamed } from "./profiles/index.ts";

/**
 * Creates an instance: the options given, else the defaults of the profile, else the general ones. Nothing is connected
 * before `start()`. Raises `oncekey_profile_unknown`, and `oncekey_config_invalid` for an option that there is not.
 */
export function createOncekey<Tx>(options: OncekeyOptions<Tx>): Oncekey<Tx> {
  const { defaults } = profileNamed(options.profile ?? "ietf");
  const given = Object.entries(options).filter(([, value]) => value !== undefined);
  return createEngine({ ...defaults, ...(Object.fromEntries(given) as unknown as OncekeyOptions<Tx>) });
}
