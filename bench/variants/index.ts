import { capture } from "./capture.ts";
import { handwritten } from "./handwritten.ts";
import { phases } from "./phases.ts";
import { plain } from "./plain.ts";
import { read } from "./read.ts";
import { transaction } from "./transaction.ts";
import type { Variant } from "./variant.ts";

/** Every variant that serves, one row each. */
export const VARIANTS: readonly Variant[] = [
  plain,
  read,
  handwritten(),
  handwritten({ named: false }),
  transaction(),
  transaction({ named: false }),
  phases,
  capture(),
  capture({ groups: true }),
  capture({ groups: false }),
];

/** The variant of a name. Raises where there is none. */
export function variantOf(name: string): Variant {
  const found = VARIANTS.find((variant) => variant.name === name);
  if (found === undefined) throw new Error(`There is no variant ${name}.`);
  return found;
}
