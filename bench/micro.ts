/**
 * Measures what the library itself costs, without a database: each part as a ratio to a yardstick that is measured beside it.
 *
 *   npm run bench:micro -- [--quick] [--rounds 40] [--only key,gate-compact] [--json FILE]
 *
 * docs/benchmarks-micro.md says how to read it.
 */
import { withBundle } from "./micro/bundled.ts";

process.exitCode = await withBundle("./run.ts", ({ run }) => run(["--expose-gc"], process.argv.slice(2)));
