// Defines every request, answer and event of dev's local API (dev.md §4). The page imports the types too, so that
// nothing of the library is imported here but names of things that are sent.
import type { DeliveryReport, TaskStatus } from '../events/event.ts';
import type { EditionName } from '../shared/editions.ts';
import type { SampleFamily } from '../testing/payloads.ts';
import type { Told } from './told.ts';

export type { Told } from './told.ts';

/** One of dev's sellers, by the scheme that it authenticates its deliveries with. */
export type DevScheme = 'signature' | 'hmac' | 'bearer';

/** The type of a delivery report. */
export type DevReport = DeliveryReport['notification_type'];

/** A seller of dev's, and the options by which a receiver knows it. */
export interface DevSeller {
  readonly scheme: DevScheme;
  readonly agentUrl: string;
  /** The URL that its deliveries are posted to. */
  readonly forward: string;
  /** The URL that its deliveries are signed for: the receiver's `publicUrl`. */
  readonly publicUrl: string;
  /** The options to paste into a receiver: `senders: [ … ], allowLoopback: true,`. It has the secret of a legacy seller. */
  readonly line: string;
}

/** The payload of a delivery (dev.md §2.1). */
export type DevPayload =
  | {
      readonly kind: 'task';
      readonly transport: 'tool' | 'agent';
      readonly status: TaskStatus;
      /** The id of a task that was sent before. Absent: a new one. */
      readonly taskId?: string;
    }
  | { readonly kind: 'report'; readonly type: DevReport }
  | { readonly kind: 'family'; readonly name: SampleFamily }
  /** A proof of control of the URL. */
  | { readonly kind: 'challenge' }
  /** A body whose text is sent unchanged. */
  | { readonly kind: 'body'; readonly text: string };

/** The body of `POST /api/send`. */
export interface SendRequest {
  readonly payload: DevPayload;
  /** The scheme of the seller. Default: `signature`. */
  readonly scheme?: DevScheme;
  /** The key of a signature. Default: `ed25519`. */
  readonly key?: 'ed25519' | 'p256';
  /** The protocol version in whose form a seller writes the body. Default: 3.1. */
  readonly edition?: EditionName;
  /** The name of a mistake that the delivery is to have. Absent: none. */
  readonly mistake?: string;
}

/** The body of `POST /api/scenarios/:name`; all members are optional. */
export interface ScenarioRequest {
  /** The scheme of the seller. Default: `signature`. */
  readonly scheme?: DevScheme;
  /** The protocol version in whose form the seller writes bodies. Default: 3.1. */
  readonly edition?: EditionName;
}

/** The answer to `POST /api/scenarios/:name`. */
export interface ScenarioStarted {
  readonly run: number;
}

/** The body of `POST /api/deliveries/:id/resend`: the same bytes and headers, or signed anew with the same body. */
export interface ResendRequest {
  readonly how: 'same' | 'anew';
}

/** The body of `POST /api/captures`: text that was pasted, or a file of the folder of `captureRefused`. */
export type CaptureRequest =
  | {
      readonly text: string;
      /** A JWK or JWKS as JSON text, to verify with in place of dev's sellers. */
      readonly keys?: string;
    }
  | { readonly file: string };

/** One file of the folder of `captureRefused`. */
export interface CaptureFile {
  readonly file: string;
  /** Unix ms. */
  readonly at: number;
  readonly bytes: number;
}

/** The answer to `GET /api/captures`: the newest files first, at most 1,000. */
export interface CaptureList {
  /** The folder as it was given, or the default. */
  readonly folder: string;
  /** The files. Absent: the folder cannot be read, or is not there. */
  readonly files?: readonly CaptureFile[];
}

/** The answer that a right receiver gives. */
export interface Expected {
  readonly status: '2xx' | number;
  /** The code, in `WWW-Authenticate` of a 401, or in the body. */
  readonly code?: string;
  /** Another status that is right too: 503 for a key id, while the receiver cannot say yet that it is unknown. */
  readonly or?: number;
}

/** A choice of a mistake, and the schemes that can make it. */
export interface MistakeChoice extends Expected {
  readonly name: string;
  /** The content of the delivery, as a sentence. */
  readonly sends: string;
  readonly schemes: readonly DevScheme[];
}

/** A choice of a scenario. */
export interface ScenarioChoice {
  readonly name: string;
  /** The description of the scenario, as a sentence. */
  readonly says: string;
  readonly schemes: readonly DevScheme[];
}

/** Everything that can be sent. */
export interface DevChoices {
  readonly schemes: readonly DevScheme[];
  readonly keys: readonly ('ed25519' | 'p256')[];
  readonly transports: readonly ('tool' | 'agent')[];
  readonly statuses: readonly TaskStatus[];
  readonly reports: readonly DevReport[];
  readonly families: readonly SampleFamily[];
  readonly editions: readonly EditionName[];
  readonly mistakes: readonly MistakeChoice[];
  readonly scenarios: readonly ScenarioChoice[];
}

/** The receiver at `--forward`, as dev finds it twice a second (dev.md §3.3). */
export interface ReceiverState {
  /** The state. `unknown`: not tried yet. */
  readonly state: 'unknown' | 'up' | 'down';
  /** The time since which the receiver has been in this state, Unix ms. */
  readonly since: number;
  /** The reason why dev cannot connect, e.g. `ECONNREFUSED`. */
  readonly error?: string;
}

/** The answer to `GET /api/state`. */
export interface DevState {
  /** The version of the package. */
  readonly version: string;
  readonly port: number;
  readonly forward: string;
  readonly publicUrl: string;
  /** The name in wire identifiers, e.g. `proto`. */
  readonly protocol: string;
  readonly sellers: readonly DevSeller[];
  readonly receiver: ReceiverState;
  /** True if a hook of `proto-webhooks/testing` has told anything since dev was started, and since the receiver was last away. */
  readonly hookHeard: boolean;
  /** The id of the last event, for `Last-Event-ID`. */
  readonly lastEvent: string;
  /** The scenarios that run, and the latest of those that have ended. */
  readonly scenarios: readonly ScenarioRun[];
  readonly choices: DevChoices;
}

/** The first cause that `explain` found. */
export interface Cause {
  /** The name of the cause, e.g. `key-missing`. */
  readonly cause: string;
  readonly says: string;
}

/** One delivery as a row of the list. */
export interface DeliveryRow {
  /** The number, from 1, in the order of sending. */
  readonly id: number;
  /** The time at which it was sent, or a capture taken in, Unix ms. */
  readonly at: number;
  /**
   * The state. `sending`: no answer yet. `answered`. `unanswered`: the connection broke, or no answer came in time.
   * `captured`: dev did not send it.
   */
  readonly state: 'sending' | 'answered' | 'unanswered' | 'captured';
  /** The content in words, e.g. `completed (tool)`, `report: final`, `impairment`, `proof of control`, `raw HTTP`. */
  readonly what: string;
  /** The scheme of its seller. Absent of a capture that is not one of a seller of dev's. */
  readonly scheme?: DevScheme;
  readonly edition?: EditionName;
  readonly mistake?: string;
  /** The delivery that it repeats. */
  readonly resent?: { readonly of: number; readonly how: ResendRequest['how'] };
  readonly scenario?: { readonly name: string; readonly run: number };
  /** The length of the body. */
  readonly bytes: number;
  /** The status of the answer. */
  readonly status?: number;
  /** The code of the answer: `error="…"` of `WWW-Authenticate`, else `error.code` of the body. */
  readonly code?: string;
  /** The time from sending to the end of the answer, ms. */
  readonly ms?: number;
  /** The expected answer. Absent of a capture. */
  readonly expected?: Expected;
  /** True if the answer is the expected one. Absent until it is answered. False without an answer. */
  readonly asExpected?: boolean;
  readonly cause?: Cause;
  /** The next step, in one sentence (dev.md §3.4). Absent if the answer is the expected one. */
  readonly next?: string;
  /**
   * The end of the handler's run, or else the outcome of the delivery, in a word, if a hook told: e.g. `applied`,
   * `refused`.
   */
  readonly told?: string;
}

/** Bytes that are shown. */
export interface ShownBytes {
  /** The encoding of `text`: `utf8` if the bytes are UTF-8, else `base64`. */
  readonly encoding: 'utf8' | 'base64';
  readonly text: string;
  /** The number of all bytes; `text` has fewer if it is cut. */
  readonly bytes: number;
  readonly cut: boolean;
}

export type HeaderLine = readonly [name: string, value: string];

/** The request that was sent or captured. */
export interface ShownRequest {
  readonly method: string;
  /** The URL that it was made for. */
  readonly url: string;
  /** The URL that it was posted to. Absent of a capture. */
  readonly to?: string;
  readonly headers: readonly HeaderLine[];
  readonly body: ShownBytes;
}

/** The answer of the receiver. */
export interface ShownAnswer {
  /** The outcome, as of an attempt of the fake seller. `success`: 2xx. */
  readonly outcome: 'success' | 'failed' | 'timeout' | 'connection_error';
  /** The status. Absent if no answer came. */
  readonly status?: number;
  readonly headers: readonly HeaderLine[];
  readonly body: ShownBytes;
}

/** One step in which a receiver judges a delivery, with the verdict that `explain` gives. */
export interface ShownStep {
  readonly id: string;
  readonly title: string;
  /** The verdict. `open`: not judged, and `detail` has the reason. */
  readonly verdict: 'pass' | 'fail' | 'open';
  readonly code?: string;
  readonly detail?: string;
}

/** The cause of a failed step, and its fix. */
export interface ShownFinding extends Cause {
  /** The id of the step whose failure it explains. */
  readonly step: string;
  readonly fix: string;
  /** True if the cause is proved; false: it is only likely. */
  readonly proved: boolean;
}

/** The explanation that `explain` gives. */
export interface ShownExplanation {
  readonly ok: boolean;
  readonly steps: readonly ShownStep[];
  readonly findings: readonly ShownFinding[];
  /** The form in which a capture was read, and the assumptions. */
  readonly notes: readonly string[];
}

/** The answer to `GET /api/deliveries/:id` and to `POST /api/captures`: one delivery in full (dev.md §3.1). */
export interface DeliveryFull extends DeliveryRow {
  readonly request: ShownRequest;
  /** The text that was signed, or has to be. Absent without a signature. */
  readonly signatureBase?: string;
  readonly answer?: ShownAnswer;
  /** The explanation. Absent until it was explained, and if it cannot be: `explainError` has the reason. */
  readonly explanation?: ShownExplanation;
  readonly explainError?: string;
  /** The reports of the receiver's hooks about the delivery, in their order. */
  readonly tellings: readonly Told[];
}

/** The answer to `GET /api/deliveries?before=N`: the newest first, at most 100. */
export interface DeliveryList {
  readonly rows: readonly DeliveryRow[];
  /** The `before` of the next page; absent: there is none. */
  readonly before?: number;
}

/** One step of a scenario that was sent. */
export interface ScenarioStep {
  /** The content of the delivery, as a sentence. */
  readonly sends: string;
  readonly expected: Expected;
  readonly delivery: number;
  /** True if the answer is the expected one. Absent until it is answered. */
  readonly ok?: boolean;
  /** The status of the answer, and its code. */
  readonly status?: number;
  readonly code?: string;
}

/** A scenario that runs or has run. */
export interface ScenarioRun {
  /** The number of the run, from 1. */
  readonly run: number;
  readonly name: string;
  readonly scheme: DevScheme;
  readonly startedAt: number;
  /**
   * The state. `waiting`: for a call of the buyer's. `failed`: an answer was not the expected one, or what was waited
   * for did not come.
   */
  readonly state: 'running' | 'waiting' | 'passed' | 'failed';
  readonly steps: readonly ScenarioStep[];
  /** The event that the run waits for, or why it failed; if nothing came, what to start. */
  readonly note?: string;
}

/** A report of a hook in the receiver, with the delivery to which dev has assigned it. */
export interface HookEvent {
  readonly told: Told;
  readonly delivery?: number;
}

/** A call of the buyer's to a seller of dev's (dev.md §1.5). */
export interface CallEvent {
  readonly at: number;
  readonly scheme: DevScheme;
  /** The name of the tool, e.g. `create_media_buy`. */
  readonly tool: string;
  /** The webhook URL that the call names, which is shown and not called. */
  readonly webhookUrl?: string;
  readonly taskId?: string;
  readonly mediaBuyId?: string;
}

/** The data of each server-sent event, by its name. */
export interface DevEvents {
  /** A row that is new or has changed. */
  readonly delivery: DeliveryRow;
  readonly receiver: ReceiverState;
  readonly scenario: ScenarioRun;
  readonly hook: HookEvent;
  readonly call: CallEvent;
  /** The events that follow `Last-Event-ID` are not kept: read the state anew. */
  readonly gap: Readonly<Record<string, never>>;
}

/** The codes of errors of the API, which stay. */
export type DevErrorCode =
  | 'forbidden_host'
  | 'forbidden_origin'
  | 'unauthorized'
  | 'not_found'
  | 'method_not_allowed'
  | 'unsupported_media_type'
  | 'body_too_large'
  | 'bad_request'
  /** The mistake is in the table, but a seller of the scheme cannot make it. */
  | 'mistake_needs_signature'
  | 'unknown_mistake'
  | 'unknown_scenario'
  | 'scenario_running'
  /** The capture cannot be read, or there is nothing to verify it with. */
  | 'unreadable_capture'
  /** The kept body of a delivery is cut, so that it cannot be sent again. */
  | 'not_kept'
  | 'too_many_streams'
  | 'internal';

/** The body of every answer but 2xx. */
export interface DevError {
  readonly error: { readonly code: DevErrorCode; readonly message: string };
}
