/** The vendors' own SDKs, from the project that installs them (its `node_modules` is not the root's). Re-exports only. */
export * as adyen from "@adyen/api-library";
export * as ec2 from "@aws-sdk/client-ec2";
export * as paypal from "@paypal/paypal-server-sdk";
export * as square from "square";
