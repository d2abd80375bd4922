/** One invariant: how many things it was looked at in, and what was found against it. */
export interface Invariant {
  readonly name: string;
  /** How many things were checked. 0 shows nothing, and fails. */
  readonly looked: number;
  readonly wrong: readonly unknown[];
}
