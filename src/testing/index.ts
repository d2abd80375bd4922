export * from "./adapter-suite.ts";
export * from "./body-suite.ts";
export * from "./crash-points.ts";
export * from "./driver-suite.ts";
export * from "./fake-clock.ts";
export * from "./publisher-suite.ts";
export * from "./store-suite.ts";
export * from "./suite.ts";
