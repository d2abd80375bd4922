import { defineConfig } from "vite";

/**
 * The page as static files: relative addresses, so that it works below any path, and nothing inline, as the console's
 * policy demands.
 */
export default defineConfig({
  root: import.meta.dirname,
  base: "./",
  // The checkout's own: a file of the environment must not end in the page.
  envDir: false,
  build: {
    target: "es2022",
    assetsInlineLimit: 0,
    modulePreload: false,
    emptyOutDir: true,
    reportCompressedSize: false,
  },
});
