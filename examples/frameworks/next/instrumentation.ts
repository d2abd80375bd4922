/** Next.js calls this once a server starts, before its first request, and never during `next build`. */
export async function register(): Promise<void> {
  if (process.env.NEXT_RUNTIME !== "nodejs") return;
  const { shop } = await import("./lib/shop.ts");
  await shop.start();
}
