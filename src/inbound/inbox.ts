export { contentId, type Delivery, type Producer } from "../core/delivery.ts";
export type { SequenceNumber } from "../core/sequence.ts";
export type {
  BatchStep,
  ConsumeOptions,
  ConsumeResult,
  DeliveryStep,
  IncomingDelivery,
  NumberedMessage,
  SequenceResult,
  Unsettled,
} from "../engine/arrival.ts";
