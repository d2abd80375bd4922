import type { ClientEvent } from "./options.ts";

/** An event without the name of its submission. */
export type Happening = ClientEvent extends infer E ? (E extends unknown ? Omit<E, "name"> : never) : never;

/** Tells what happened to the submission of that name. */
export type Tell = (name: string, happening: Happening) => void;
