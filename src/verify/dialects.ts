/** What a dialect says of one refusal. */
export interface RefusalRule {
  /** The statuses that are documented. */
  readonly statuses: readonly number[];
  /** The word that a program decides on, where one is documented. */
  readonly word?: string;
  /** The answer is to be a problem body, or to link to what describes the problem. */
  readonly problem?: true;
  /** A header that the answer is to carry. */
  readonly header?: readonly [name: string, value: string];
}

/** Where the key travels. */
export type KeyPlace =
  | { readonly in: "header"; readonly name: string }
  /** A member of the JSON body, or a pair of the form body. */
  | { readonly in: "member"; readonly name: string };

/**
 * What a dialect's own documents say that can be seen from outside. `null` where they are silent: the kit then demands
 * nothing, or only what every API owes its clients.
 */
export interface Dialect {
  readonly name: string;
  /** The document that the row was read from. */
  readonly source: string;
  readonly key: {
    readonly place: KeyPlace;
    /** How an ordinary key is written: as a string of RFC 9651, or as it is. */
    readonly form: "quoted" | "bare";
    readonly required: boolean;
    /** The longest key that must be taken, in characters. */
    readonly longest: number | null;
    /** Only UUIDs are keys. */
    readonly uuid: boolean;
    /** Only characters of ASCII are keys. */
    readonly ascii: boolean;
  };
  /** Header lines that go with every key; `firstSent` is filled with the instant of sending. */
  readonly firstSent: string | null;
  /** `bytes`: a replay is what was answered first. `state`: it is the resource as it is now. */
  readonly replay: "bytes" | "state";
  /** Header that tells a replay from a first answer. `both`: it stands on first answers too. */
  readonly marker: { readonly name: string; readonly value: string | null; readonly both: boolean } | null;
  /** The same key on another operation: runs on its own, is refused, or either. */
  readonly otherOperation: "own" | "refused" | "either";
  /** What a kept refusal of the business is for a retry. */
  readonly afterRefusal: "replayed" | "runs" | null;
  readonly missing: RefusalRule | null;
  readonly mismatch: RefusalRule | null;
  readonly busy: RefusalRule | null;
  /** A 409 or 503 says when to come back. */
  readonly retryAfter: boolean;
  /** The answer to a request that was first sent before all that is kept. */
  readonly late: RefusalRule | null;
}

const BARE: Dialect["key"] = {
  place: { in: "header", name: "Idempotency-Key" },
  form: "bare",
  required: false,
  longest: null,
  uuid: false,
  ascii: false,
};

const SILENT = {
  firstSent: null,
  replay: "bytes",
  marker: null,
  otherOperation: "either",
  afterRefusal: null,
  missing: null,
  mismatch: null,
  busy: null,
  retryAfter: true,
  late: null,
} as const;

const STRIPE_MARKER = { name: "Idempotent-Replayed", value: "true", both: false } as const;

const ROWS: readonly Dialect[] = [
  {
    ...SILENT,
    name: "ietf",
    source: "draft-ietf-httpapi-idempotency-key-header, sections 2.1 to 2.7",
    key: { ...BARE, form: "quoted", required: true, ascii: true },
    afterRefusal: "replayed",
    missing: { statuses: [400], problem: true },
    mismatch: { statuses: [422], problem: true },
    busy: { statuses: [409], problem: true },
  },
  {
    ...SILENT,
    name: "stripe",
    source: "docs.stripe.com/api/idempotent_requests, docs.stripe.com/error-low-level",
    key: { ...BARE, longest: 255 },
    marker: STRIPE_MARKER,
    otherOperation: "refused",
    afterRefusal: "replayed",
    mismatch: { statuses: [400], word: "idempotency_error" },
    busy: { statuses: [409], word: "idempotency_key_in_use" },
    // Its documents name no Retry-After, and its SDK reads none.
    retryAfter: false,
  },
  {
    ...SILENT,
    name: "stripe-v2",
    source: "docs.stripe.com/api-v2-overview",
    key: { ...BARE, longest: 255 },
    afterRefusal: "runs",
    mismatch: { statuses: [400, 409, 422], word: "idempotency_error" },
    retryAfter: false,
  },
  {
    ...SILENT,
    name: "adyen",
    source: "docs.adyen.com/development-resources/api-idempotency",
    key: { ...BARE, longest: 64 },
    marker: { name: "Idempotency-Key", value: null, both: true },
    busy: { statuses: [409, 422], word: "704" },
    retryAfter: false,
  },
  {
    ...SILENT,
    name: "paypal",
    source: "developer.paypal.com/reference/guidelines/idempotency and the OpenAPI documents",
    key: { ...BARE, place: { in: "header", name: "PayPal-Request-Id" }, longest: 108 },
    replay: "state",
    otherOperation: "own",
    mismatch: { statuses: [400, 422], word: "DUPLICATE_REQUEST_ID" },
    busy: { statuses: [409], word: "PREVIOUS_REQUEST_IN_PROGRESS" },
  },
  {
    ...SILENT,
    name: "square",
    source: "developer.squareup.com/docs/working-with-apis/idempotency",
    key: { ...BARE, place: { in: "member", name: "idempotency_key" }, required: true, longest: 45 },
    missing: { statuses: [400] },
    mismatch: { statuses: [400], word: "IDEMPOTENCY_KEY_REUSED" },
  },
  {
    ...SILENT,
    name: "google",
    source: "google.aip.dev/155",
    key: { ...BARE, place: { in: "member", name: "request_id" }, longest: 36, uuid: true },
    afterRefusal: "runs",
  },
  {
    ...SILENT,
    name: "azure",
    source: "OASIS Repeatable Requests 1.0, Azure REST API guidelines",
    key: { ...BARE, place: { in: "header", name: "Repeatability-Request-ID" }, longest: 36, uuid: true },
    firstSent: "Repeatability-First-Sent",
    marker: { name: "Repeatability-Result", value: "accepted", both: true },
    afterRefusal: "replayed",
    mismatch: { statuses: [400], header: ["Repeatability-Result", "rejected"] },
    busy: { statuses: [409] },
    late: { statuses: [412], header: ["Repeatability-Result", "rejected"] },
  },
];

/** The dialects by name. AWS's are not among them: a signature covers the body, and the kit cannot sign. */
export const dialects: ReadonlyMap<string, Dialect> = new Map(ROWS.map((row) => [row.name, row]));
