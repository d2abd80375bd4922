const ESCAPES: Readonly<Record<string, string>> = { "&": "&amp;", "<": "&lt;", ">": "&gt;" };

/** An element with text in it. Control characters, which XML cannot hold, are left out. */
export function leaf(name: string, text: string): string {
  const escaped = text.replace(/[^\t\n\r\P{Cc}]/gu, "").replace(/[&<>]/g, (character) => ESCAPES[character] ?? "");
  return `<${name}>${escaped}</${name}>`;
}

/** An element with elements in it. */
export function node(name: string, elements: readonly string[]): string {
  return `<${name}>${elements.join("")}</${name}>`;
}
