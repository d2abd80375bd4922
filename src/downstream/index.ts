export * from "./publisher.ts";
export * from "./relay.ts";
