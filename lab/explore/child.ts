/** A child of the explorer: does one job after the other until its parent is gone. */
import { serveCrew } from "./crew.ts";
import { doJob } from "./job.ts";
import { quietly } from "./quietly.ts";

quietly();
serveCrew(doJob);
