import type { StepAbout } from "./stage.ts";

/** How schedules call the port's methods. */
const PHRASES: Readonly<Record<string, string>> = {
  clockMs: "asks for the time",
  read: "looks",
  running: "looks who runs",
  claim: "claims",
  takeOver: "takes over",
  renew: "renews its lease",
  forgetExpired: "forgets the expired entry",
  release: "releases",
  suspend: "suspends",
  markUnknown: "marks unknown",
  complete: "stores the outcome",
  journal: "reads the journal",
  openIntent: "commits the intent",
  cancelIntent: "commits the cancellation",
  recordCall: "records the result",
  takeDue: "takes what is due",
  markLapsed: "marks what lapsed",
  announce: "announces",
  purge: "purges",
  purgeDeliveries: "purges deliveries",
  resolve: "resolves",
  owns: "asserts its ownership",
  send: "sends a message",
  deliveries: "looks for deliveries",
  lock: "takes the locks",
  enter: "enters",
  insertFinished: "inserts the finished entry",
  recordPhase: "records the phase",
  tryLocks: "tries the locks",
  accept: "remembers the delivery",
  forget: "forgets the delivery",
  producer: "reads the producer",
  moveProducer: "moves the producer",
  moveSubject: "moves the subject",
};

/** Which argument tells two uses of one method apart. */
const NAMED: Readonly<Record<string, number>> = {
  recordPhase: 2,
  recordCall: 2,
  openIntent: 2,
  cancelIntent: 2,
};

/** What a process does with a method, in words. */
export function phraseOf(method: string, args: readonly unknown[]): string {
  const phrase = PHRASES[method] ?? method;
  const named = args[NAMED[method] ?? -1] as { name?: string; call?: string } | string | undefined;
  if (named === undefined) return phrase;
  const name = typeof named === "string" ? named : (named.name ?? named.call);
  return `${phrase} of ${name}`;
}

/** Where the entry and the fence stand among a method's arguments. */
export function aboutOf(method: string, args: readonly unknown[]): StepAbout {
  const hex = (value: unknown) => (value instanceof Uint8Array ? Buffer.from(value).toString("hex") : null);
  const [first, second, third] = args;
  if (typeof first === "object" && first !== null && "fence" in first && "id" in first) {
    return { method, id: hex(first.id), fence: hex(first.fence) };
  }
  return { method, id: hex(first), fence: method === "takeOver" ? hex(third) : hex(second) };
}
