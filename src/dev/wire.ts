// Defines every request, answer and event of dev's local API (dev.md §4). The page imports these types too, so this
// file imports nothing from the library but types.
import type { DeliveryReport, TaskStatus } from '../events/event.ts';
import type { EditionName } from '../shared/editions.ts';
import type { SampleFamily } from '../testing/payloads.ts';
import type { Told } from './told.ts';

export type { Told } from './told.ts';

/** The scheme by which a seller of dev authenticates its deliveries. Dev has one seller for each scheme. */
export type DevScheme = 'signature' | 'hmac' | 'bearer';

export type DevReport = DeliveryReport['notification_type'];

/** A seller of dev, and the options with which a receiver accepts it. */
export interface DevSeller {
  readonly scheme: DevScheme;
  readonly agentUrl: string;
  /** The URL that the seller's deliveries are posted to. */
  readonly forward: string;
  /** The URL that the seller's deliveries are signed for: the receiver's option `publicUrl`. */
  readonly publicUrl: string;
  /**
   * The options to paste into a receiver: `senders: [ … ], allowLoopback: true,`. They contain the HMAC secret or
   * bearer token, if the seller has one.
   */
  readonly line: string;
}

/** The payload of a delivery (dev.md §2.1). */
export type DevPayload =
  | {
      readonly kind: 'task';
      readonly transport: 'tool' | 'agent';
      readonly status: TaskStatus;
      /** The id of a task that was sent before. Default: a new id. */
      readonly taskId?: string;
    }
  | { readonly kind: 'report'; readonly type: DevReport }
  | { readonly kind: 'family'; readonly name: SampleFamily }
  /** A proof of control, i.e. a challenge to the owner of the URL. */
  | { readonly kind: 'challenge' }
  /** A body whose text is sent unchanged. */
  | { readonly kind: 'body'; readonly text: string };

/** The body of `POST /api/send`. */
export interface SendRequest {
  readonly payload: DevPayload;
  /** The authentication scheme; dev has one seller for each. Default: `signature`. */
  readonly scheme?: DevScheme;
  /** The key to sign with. Default: `ed25519`. */
  readonly key?: 'ed25519' | 'p256';
  /** The protocol version in whose form the body is written. Default: 3.1. */
  readonly edition?: EditionName;
  /** The name of a mistake to make in the delivery. Default: none. */
  readonly mistake?: string;
}

/** The body of `POST /api/scenarios/:name`; all members are optional. */
export interface ScenarioRequest {
  /** The authentication scheme; dev has one seller for each. Default: `signature`. */
  readonly scheme?: DevScheme;
  /** The protocol version in whose form bodies are written. Default: 3.1. */
  readonly edition?: EditionName;
}

/** The answer to `POST /api/scenarios/:name`. */
export interface ScenarioStarted {
  readonly run: number;
}

/**
 * The body of `POST /api/deliveries/:id/resend`. `same` repeats the bytes and headers; `anew` signs the same body
 * again.
 */
export interface ResendRequest {
  readonly how: 'same' | 'anew';
}

/**
 * The body of `POST /api/captures`: a captured request as pasted text, or a file in the folder of the receiver's option
 * `captureRefused`.
 */
export type CaptureRequest =
  | {
      readonly text: string;
      /** A JWK or JWKS as JSON text. The request is verified with these keys instead of the keys of dev's sellers. */
      readonly keys?: string;
    }
  | { readonly file: string };

/** A captured request in the folder of the receiver's option `captureRefused`. */
export interface CaptureFile {
  readonly file: string;
  /** The time at which the file was written, Unix ms. */
  readonly at: number;
  readonly bytes: number;
}

/** The answer to `GET /api/captures`: the newest files first, at most 1,000. */
export interface CaptureList {
  /** The folder as the user gave it, or the default. */
  readonly folder: string;
  /** The files. Absent if the folder does not exist or cannot be read. */
  readonly files?: readonly CaptureFile[];
}

/** The answer that a correct receiver gives to a delivery. */
export interface Expected {
  readonly status: '2xx' | number;
  /** The error code: in `WWW-Authenticate` of a 401, else in the body. */
  readonly code?: string;
  /** Another status that is correct too: 503 for an unknown key id, while the receiver may not fetch keys again yet. */
  readonly or?: number;
}

/** A mistake that dev can make, the expected answer, and the schemes whose sellers can make the mistake. */
export interface MistakeChoice extends Expected {
  readonly name: string;
  /** A sentence that says what is wrong with the delivery. */
  readonly sends: string;
  readonly schemes: readonly DevScheme[];
}

/** A scenario that dev can run. */
export interface ScenarioChoice {
  readonly name: string;
  /** A sentence that describes the scenario. */
  readonly says: string;
  readonly schemes: readonly DevScheme[];
}

/** Everything that the page offers to send. */
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

/** The state of the receiver at `--forward`, which dev checks twice a second (dev.md §3.3). */
export interface ReceiverState {
  /** Reachable (`up`) or not (`down`). `unknown`: dev has not tried to connect yet. */
  readonly state: 'unknown' | 'up' | 'down';
  /** The time since which the receiver has been in this state, Unix ms. */
  readonly since: number;
  /** The reason why dev cannot connect, e.g. `ECONNREFUSED`. */
  readonly error?: string;
}

/** The answer to `GET /api/state`. */
export interface DevState {
  /** The version of the package `proto-webhooks`. */
  readonly version: string;
  readonly port: number;
  readonly forward: string;
  readonly publicUrl: string;
  /** The protocol name in wire identifiers, e.g. `proto`. */
  readonly protocol: string;
  readonly sellers: readonly DevSeller[];
  readonly receiver: ReceiverState;
  /** True once `devHooks` in the receiver has reported anything. Becomes false again when the receiver goes down. */
  readonly hookHeard: boolean;
  /** The id of the latest server-sent event, for the header `Last-Event-ID`. */
  readonly lastEvent: string;
  /** The running scenarios, and the latest of those that have ended. */
  readonly scenarios: readonly ScenarioRun[];
  readonly choices: DevChoices;
}

/** The first cause of a failure that `explain` has found. */
export interface Cause {
  /** The name of the cause, e.g. `key-missing`. */
  readonly cause: string;
  readonly says: string;
}

/** One delivery as a row of the page's list. */
export interface DeliveryRow {
  /** The number of the delivery, from 1, in the order of sending. */
  readonly id: number;
  /** The time at which the delivery was sent, or the captured request was read. Unix ms. */
  readonly at: number;
  /**
   * The state. `sending`: no answer yet. `answered`: an answer came. `unanswered`: the connection broke, or no answer
   * came in time. `captured`: a captured request, which dev did not send.
   */
  readonly state: 'sending' | 'answered' | 'unanswered' | 'captured';
  /** A label of the content, e.g. `completed (tool)`, `report: final`, `impairment`, `proof of control`, `raw HTTP`. */
  readonly what: string;
  /** The scheme of the seller. Absent for a captured request that is from none of dev's sellers. */
  readonly scheme?: DevScheme;
  readonly edition?: EditionName;
  readonly mistake?: string;
  /** Present if the delivery repeats another one. `of` is the number of the other delivery. */
  readonly resent?: { readonly of: number; readonly how: ResendRequest['how'] };
  readonly scenario?: { readonly name: string; readonly run: number };
  /** The length of the request's body, bytes. */
  readonly bytes: number;
  /** The HTTP status of the answer. */
  readonly status?: number;
  /** The error code of the answer: `error="…"` of `WWW-Authenticate`, else `error.code` of the body. */
  readonly code?: string;
  /** The time from sending to the end of the answer, ms. */
  readonly ms?: number;
  /** The expected answer. Absent for a captured request. */
  readonly expected?: Expected;
  /** True if the answer is the expected one; false also if no answer came. Absent while the answer is awaited. */
  readonly asExpected?: boolean;
  readonly cause?: Cause;
  /** Advice for the user (dev.md §3.4). Absent if the answer is the expected one. */
  readonly next?: string;
  /**
   * One word from the receiver's hooks: the result of the handler's run, e.g. `applied`, else the outcome of the
   * delivery, e.g. `refused`.
   */
  readonly told?: string;
}

/** A body as the API shows it. */
export interface ShownBytes {
  /** The encoding of `text`: `utf8` if the bytes are UTF-8, else `base64`. */
  readonly encoding: 'utf8' | 'base64';
  readonly text: string;
  /** The number of all bytes; `text` has fewer if `cut` is true. */
  readonly bytes: number;
  readonly cut: boolean;
}

export type HeaderLine = readonly [name: string, value: string];

/** The request that was sent or captured. */
export interface ShownRequest {
  readonly method: string;
  /** The URL that the request is signed for. */
  readonly url: string;
  /** The URL that the request was posted to. Absent for a captured request. */
  readonly to?: string;
  readonly headers: readonly HeaderLine[];
  readonly body: ShownBytes;
}

/** The answer of the receiver. */
export interface ShownAnswer {
  /**
   * The outcome. `success`: 2xx. `failed`: any other answer. `timeout`: no answer in time. `connection_error`: the
   * connection broke.
   */
  readonly outcome: 'success' | 'failed' | 'timeout' | 'connection_error';
  /** The HTTP status. Absent if no answer came. */
  readonly status?: number;
  readonly headers: readonly HeaderLine[];
  readonly body: ShownBytes;
}

/** One check that a receiver makes on a delivery, with the verdict of `explain`. */
export interface ShownStep {
  readonly id: string;
  readonly title: string;
  /** The verdict. `open`: the check was not judged, and `detail` has the reason. */
  readonly verdict: 'pass' | 'fail' | 'open';
  readonly code?: string;
  readonly detail?: string;
}

/** The cause of a failed check, and the way to fix it. */
export interface ShownFinding extends Cause {
  /** The id of the check whose failure the cause explains. */
  readonly step: string;
  readonly fix: string;
  /** True if the cause is proved; false: it is only likely. */
  readonly proved: boolean;
}

/** The explanation of a delivery by `explain`. */
export interface ShownExplanation {
  readonly ok: boolean;
  readonly steps: readonly ShownStep[];
  readonly findings: readonly ShownFinding[];
  /** Notes on the form in which a captured request was read, and on assumptions that were made. */
  readonly notes: readonly string[];
}

/** The answer to `GET /api/deliveries/:id` and to `POST /api/captures`: one delivery in full (dev.md §3.1). */
export interface DeliveryFull extends DeliveryRow {
  readonly request: ShownRequest;
  /** The text that the signature or the HMAC covers. Absent if there is neither. */
  readonly signatureBase?: string;
  readonly answer?: ShownAnswer;
  /** The explanation. Absent if the delivery cannot be explained: `explainError` then has the reason. */
  readonly explanation?: ShownExplanation;
  readonly explainError?: string;
  /** The reports of the receiver's hooks about the delivery, in the order of arrival. */
  readonly tellings: readonly Told[];
}

/** The answer to `GET /api/deliveries?before=N`: the newest first, at most 100. */
export interface DeliveryList {
  readonly rows: readonly DeliveryRow[];
  /** The parameter `before` for the next page. Absent if there is none. */
  readonly before?: number;
}

/** One delivery that a scenario has sent. */
export interface ScenarioStep {
  /** A sentence that says what was delivered. */
  readonly sends: string;
  readonly expected: Expected;
  readonly delivery: number;
  /** True if the answer is the expected one. Absent until the receiver has answered. */
  readonly ok?: boolean;
  /** The HTTP status of the answer. `code` is the error code. */
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
   * The state. `waiting`: for a call of the buyer, or for time to pass. `failed`: an answer was not the expected one,
   * or the awaited call did not come.
   */
  readonly state: 'running' | 'waiting' | 'passed' | 'failed';
  readonly steps: readonly ScenarioStep[];
  /**
   * A text for the page: the awaited call or time, or the reason why the run failed. If no call came, it says what the
   * user has to start.
   */
  readonly note?: string;
}

/** A report of the receiver's hooks, and the number of the delivery that it is about, if dev has found one. */
export interface HookEvent {
  readonly told: Told;
  readonly delivery?: number;
}

/** A tool call of the buyer to a seller of dev (dev.md §1.5). */
export interface CallEvent {
  readonly at: number;
  readonly scheme: DevScheme;
  /** The name of the tool, e.g. `create_media_buy`. */
  readonly tool: string;
  /** The webhook URL that the call names. Dev shows the URL, and never calls it. */
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
  /** Some events after `Last-Event-ID` are no longer kept, so the page has to read the state again. */
  readonly gap: Readonly<Record<string, never>>;
}

/** The error codes of the API. Their names do not change. */
export type DevErrorCode =
  | 'forbidden_host'
  | 'forbidden_origin'
  | 'unauthorized'
  | 'not_found'
  | 'method_not_allowed'
  | 'unsupported_media_type'
  | 'body_too_large'
  | 'bad_request'
  /** The mistake exists, but needs a signature, which a seller of the scheme does not make. */
  | 'mistake_needs_signature'
  | 'unknown_mistake'
  | 'unknown_scenario'
  | 'scenario_running'
  /** The captured request or the pasted keys cannot be read, or the URL of the request is unknown. */
  | 'unreadable_capture'
  /** The delivery cannot be sent again, because only a part of its body was kept. */
  | 'not_kept'
  | 'too_many_streams'
  | 'internal';

/** The body of every answer that is not 2xx. */
export interface DevError {
  readonly error: { readonly code: DevErrorCode; readonly message: string };
}
