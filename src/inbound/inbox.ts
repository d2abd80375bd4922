export { contentId, type Delivery, type Producer } from "../core/delivery.ts";
export type { SequenceNumber } from "../core/sequence.ts";
export type { NumberedSpan } from "../core/sequence-batch.ts";
export type {
  BatchStep,
  ConsumeOptions,
  ConsumeResult,
  DeliveryStep,
  IncomingDelivery,
  NumberedBatch,
  NumberedBatchOptions,
  NumberedBatchResult,
  NumberedMessage,
  SequenceResult,
  Unsettled,
} from "../engine/arrival.ts";
export { appendKafkaBatch, type KafkaAppended, type KafkaBatchHead, type KafkaPartition } from "./kafka-producer.ts";
