import { instance, type OncekeyChoices, served, transactionOf } from "./oncekey.ts";
import type { Variant } from "./variant.ts";

/** Oncekey's `transaction` kind. */
export function transaction(choices: OncekeyChoices = {}): Variant {
  const unnamed = choices.named === false;
  return {
    name: unnamed ? "transaction-unnamed" : "transaction",
    title: `Oncekey, \`transaction\`${unnamed ? ", statements not named" : ""}`,
    async open(world) {
      const once = instance(world, choices);
      return served(once, transactionOf(once, world.handler));
    },
  };
}
