/** Two ways of spending time on one request, measured beside each other. Both may be asynchronous. */
export interface Pair {
  /** What the library does. */
  work(): unknown;
  /** What it is held against. */
  yardstick(): unknown;
}

/** One thing that is measured, at every size of body. */
export interface Subject {
  readonly name: string;
  /** What it is, in words. */
  readonly what: string;
  /** What the yardstick does. */
  readonly against: string;
  /** Fewer than all where one is out of the question. */
  readonly sizes?: readonly number[];
  pair(bytes: number): Pair | Promise<Pair>;
}
