/** What a catcher said of a tree. Only `caught` is a catch: a crash of the broken code shows nothing of the suite. */
export type Verdict =
  | { readonly kind: "caught"; readonly how: string }
  | { readonly kind: "clean" }
  | { readonly kind: "broken"; readonly why: string };

/** The first line of a text, cut to so many characters. */
export function firstLine(text: string, most = 100): string {
  const [line = ""] = text.trim().split("\n");
  return line.length > most ? `${line.slice(0, most - 1)}…` : line;
}
