export { createSweeper, type Sweeper, type SweeperOptions, type SweepReport } from "./sweeper.ts";
