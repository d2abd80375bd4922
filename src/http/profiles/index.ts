import { OncekeyError } from "../../core/errors.ts";
import type { Profile } from "../profile.ts";
import { adyen } from "./adyen.ts";
import { awsEc2 } from "./aws-ec2.ts";
import { awsJson } from "./aws-json.ts";
import { azure } from "./azure.ts";
import { google } from "./google.ts";
import { ietf } from "./ietf.ts";
import { paypal } from "./paypal.ts";
import { shopify } from "./shopify.ts";
import { sqsFifo } from "./sqs-fifo.ts";
import { square } from "./square.ts";
import { stripe } from "./stripe.ts";
import { stripeV2 } from "./stripe-v2.ts";

/** Every dialect, one row each, in the order in which the documentation lists them. */
export const profiles: readonly Profile[] = [
  ietf,
  stripe,
  stripeV2,
  adyen,
  paypal,
  awsEc2,
  awsJson,
  sqsFifo,
  square,
  shopify,
  google,
  azure,
];

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
