export { crashPoints, type OnPoint, type PointsShape } from "../engine/points.ts";
