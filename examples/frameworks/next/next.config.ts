import type { NextConfig } from "next";

const config: NextConfig = {
  // Loaded by Node as they are, so that all routes share one copy of the library and of the connection pool.
  serverExternalPackages: ["oncekey", "pg"],
};

export default config;
