import { expect } from "vitest";
import { eventually } from "./example.ts";
import { errorOf, type SdkWorld } from "./sdk-cases.ts";
import type { SdkAttempt } from "./sdk-proxy.ts";

/** What an AWS client of the example is configured with: a tenant's credentials, and a Region that it signs for. */
export function awsConfig(world: SdkWorld, more: { readonly accessKeyId?: string; readonly secret?: string } = {}) {
  const { accessKeyId = "sk_test_acme", secret = `${accessKeyId}_secret` } = more;
  return {
    endpoint: `http://127.0.0.1:${world.proxy.port}`,
    region: "eu-central-1",
    credentials: { accessKeyId, secretAccessKey: secret },
  };
}

/** Makes a call, and does `then` once the API has answered one of its requests with that status: gives what the call gave. */
export async function afterAnswer<T>(
  { proxy }: SdkWorld,
  status: number,
  call: () => Promise<T>,
  then: () => unknown,
): Promise<T> {
  const seen = proxy.attempts.length;
  const calling = call();
  const hasOne = () => proxy.attempts.slice(seen).some(({ answer }) => answer?.status === status);
  try {
    await eventually(`an answer with ${status}`, 20_000, hasOne);
  } finally {
    await then();
  }
  return calling;
}

/** The handler of invoices is broken until the API has answered with 500. */
export async function throughFault<T>(world: SdkWorld, call: () => Promise<T>): Promise<T> {
  await world.lab.sql("ALTER TABLE invoices RENAME TO hidden");
  return afterAnswer(world, 500, call, () => world.lab.sql("ALTER TABLE hidden RENAME TO invoices"));
}

/** What every call of an AWS SDK gives. */
export interface AwsOutput {
  readonly $metadata: { readonly requestId?: string | undefined };
}

/** What a call of an AWS SDK gave, without what belongs to the call alone. */
export function content<T extends AwsOutput>({ $metadata: _, ...rest }: T) {
  return rest;
}

/** What a successful call says of itself. */
export function expectMetadata({ $metadata }: AwsOutput, attempts: readonly SdkAttempt[]): void {
  const requestId = attempts.at(-1)?.answer?.headers["x-amzn-requestid"];
  expect($metadata).toMatchObject({ httpStatusCode: 200, attempts: attempts.length, requestId });
}

/** What the calls of all AWS SDKs have in common. */
export const awsCalls = { shown: content, requestIdOf: ({ $metadata }: AwsOutput) => $metadata.requestId };

/** What the caller holds when a service refuses. */
interface AwsRefusal {
  readonly name: string;
  readonly status: number;
  /** How many requests the SDK made. */
  readonly attempts: number;
  /** A part of the message. */
  readonly message?: string;
}

/** The errors of a service, by their class. */
export function awsErrors<T>(Service: abstract new (...args: never[]) => T) {
  return {
    /** The error of a call that is refused; raises where it is none of the service's. */
    async refusal(call: Promise<unknown>): Promise<T> {
      const error = await errorOf(call);
      expect(error).toBeInstanceOf(Service);
      return error as T;
    },
    expectRefusal(error: unknown, { name, status, attempts, message = "" }: AwsRefusal): void {
      expect(error).toBeInstanceOf(Service);
      const $metadata = { httpStatusCode: status, attempts };
      expect(error).toMatchObject({ name, $metadata, message: expect.stringContaining(message) });
    },
  };
}
