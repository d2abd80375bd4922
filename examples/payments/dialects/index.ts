import type { Express } from "express";
import type { Lab } from "../lab.ts";
import type { Payments } from "../payments.ts";
import { mountAdyen } from "./adyen.ts";
import { mountAwsEc2 } from "./aws-ec2.ts";
import { mountAwsJson } from "./aws-json.ts";
import { mountAzure } from "./azure.ts";
import { mountGoogle } from "./google.ts";
import { mountPaypal } from "./paypal.ts";
import { mountSqsFifo } from "./sqs-fifo.ts";
import { mountSquare } from "./square.ts";
import { mountStripe, mountStripeV2 } from "./stripe.ts";

/** What a vendor's paths are made of: the same operations as the API's own routes. */
export interface DialectParts {
  readonly operations: Payments["operations"];
  readonly lab: Lab;
}

/** Puts a vendor's paths into the API. They bring their own authentication and their own form of errors. */
export type MountDialect = (app: Express, parts: DialectParts) => void;

/** The vendor paths of each dialect that has some. Before the API's own routes, which share the first part of their paths. */
const mounts: ReadonlyMap<string, MountDialect> = new Map([
  ["stripe", mountStripe],
  ["stripe-v2", mountStripeV2],
  ["adyen", mountAdyen],
  ["aws-ec2", mountAwsEc2],
  ["aws-json", mountAwsJson],
  ["sqs-fifo", mountSqsFifo],
  ["paypal", mountPaypal],
  ["square", mountSquare],
  ["google", mountGoogle],
  ["azure", mountAzure],
]);

/** Mounts the vendor paths of the API's dialect, where it has any. */
export function mountDialect(app: Express, parts: DialectParts, profile: string): void {
  mounts.get(profile)?.(app, parts);
}
