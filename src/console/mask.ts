/** Shown of each end of a long text. */
const END = 4;

/** The ends of a text, so that a person recognises it and nobody can use it: less of a short one, nothing of a very short one. */
export function masked(text: string): string {
  const characters = [...text];
  const shown = Math.min(END, Math.floor(characters.length / 6));
  if (shown === 0) return "…";
  return `${characters.slice(0, shown).join("")}…${characters.slice(-shown).join("")}`;
}

/** The same where there may be none. */
export function maskedOrNull(text: string | null): string | null {
  return text === null ? null : masked(text);
}
