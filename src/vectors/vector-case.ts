// Types of vectors after reading: their kinds, their requests, and the answers that they expect.
import type { JsonObject } from '../codec/members.ts';
import { PrintableError } from '../codec/printable-value.ts';
import type { Transport } from '../events/event.ts';
import type { Redirect, Setup, VectorRequest } from './subject.ts';

/**
 * The kind of a conformance vector (`kind` of its result). It names the part of the protocol that the vector tests:
 * signatures, bodies, answers of sellers, and others.
 */
export type VectorKind =
  | 'signature'
  | 'canonicalization'
  | 'hmac'
  | 'bearer'
  | 'extraction'
  | 'envelope'
  | 'sequence'
  | 'answer'
  | 'error'
  | 'redirects'
  | 'secret';

/** The expected answer. Members that are absent are not compared. */
export interface Expectation {
  /** True if the sender is proved and the body is JSON; the envelope may still be invalid. */
  readonly authentic?: boolean;
  /** True if the sender is proved, whatever its body is. */
  readonly proved?: boolean;
  readonly status?: number;
  /** Null: no code is expected. */
  readonly code?: string | null;
  readonly check?: string;
  readonly kind?: string;
  readonly wwwAuthenticate?: string | null;
  readonly body?: string;
  readonly sender?: string;
  readonly handled?: boolean;
  readonly changed?: boolean;
  readonly reemission?: boolean;
  readonly warnings?: readonly string[];
  readonly eventKind?: string;
  readonly family?: string | null;
}

/** One request of a vector, with the answer that it expects. */
export interface Step {
  readonly name?: string;
  readonly request: VectorRequest;
  /** The receiver's clock, Unix ms. */
  readonly nowMs: number;
  readonly handlerFails: boolean;
  readonly expected: Expectation;
}

interface Named {
  readonly name: string;
  /** The path of its file, as it was found. */
  readonly file: string;
}

/** The requests to one receiver, one after the other. */
export interface DeliveryCase extends Named {
  readonly kind: 'signature' | 'hmac' | 'bearer' | 'envelope' | 'sequence';
  readonly setup: Setup;
  readonly steps: readonly Step[];
  /** The signature base of the first request. */
  readonly signatureBase?: string;
}

/** A URL with its canonical form, or without one. */
export interface CanonicalizationCase extends Named {
  readonly kind: 'canonicalization';
  readonly url: string;
  readonly expected:
    | { readonly refused: false; readonly targetUri?: string; readonly authority?: string }
    /** `code`: the code of the error that is thrown; absent: not compared. */
    | { readonly refused: true; readonly code?: string };
}

/** A payload with the result of extraction. */
export interface ExtractionCase extends Named {
  readonly kind: 'extraction';
  readonly payload: unknown;
  /** Absent: not compared. Null: none. */
  readonly format?: string | null;
  /** Absent: not compared. Null: none. */
  readonly data?: { readonly value: unknown };
}

/** The answer to a call, with the data in it. */
export interface AnswerCase extends Named {
  readonly kind: 'answer';
  readonly transport: Transport;
  readonly response: unknown;
  /** Null: none. */
  readonly data: unknown;
  /** Absent: not compared. Null: none. */
  readonly error?: string | null;
}

/** The reaction of a caller to an error, in the words of the published vectors. */
export type ErrorAction = 'retry' | 'surface_to_caller' | 'escalate_to_human' | 'generic_error';

/** The answer to a call that failed, with the error in it. */
export interface ErrorCase extends Named {
  readonly kind: 'error';
  readonly transport: Transport;
  readonly response: unknown;
  /** Absent: not compared. Null: none. */
  readonly error?: JsonObject | null;
  /** Absent: not compared. */
  readonly action?: ErrorAction;
}

/** A document of a publisher that is redirected. */
export interface RedirectsCase extends Named {
  readonly kind: 'redirects';
  readonly target: 'well-known' | 'authoritative';
  readonly url: string;
  readonly redirects: readonly Redirect[];
  /** `finalUrl` absent: not compared. */
  readonly expected:
    | { readonly refused: false; readonly finalUrl?: string }
    | { readonly refused: true; readonly why?: string };
}

/** A shared secret that no receiver may be configured with. */
export interface SecretCase extends Named {
  readonly kind: 'secret';
  readonly secret: string;
}

/** A vector that nothing here can judge, or a file whose vectors are of no known kind. */
export interface NotJudgedCase extends Named {
  readonly kind: 'not-judged';
  readonly what: 'file' | 'vector';
  readonly reason: string;
}

/** A vector that cannot be run, because the file or a part of it is not as expected. */
export interface UnreadableCase extends Named {
  readonly kind: 'unreadable';
  readonly reason: string;
}

/** A vector that was read. */
export type VectorCase =
  | DeliveryCase
  | CanonicalizationCase
  | ExtractionCase
  | AnswerCase
  | ErrorCase
  | RedirectsCase
  | SecretCase
  | UnreadableCase;

/** The outcome of reading one vector. */
export type ReadCase = VectorCase | NotJudgedCase;

/**
 * Thrown by `runVectors` if vectors cannot be read. `message` is one line with the file, the problem, and the
 * expected form.
 */
export class VectorError extends PrintableError {
  override readonly name = 'VectorError';
  /** The stable code, always `vector_error`. */
  readonly code = 'vector_error';
}

/**
 * A file, vector, or member of a vector that `runVectors` found but did not judge, with the reason, passed to the
 * option `onSkipped`.
 */
export interface Skipped {
  /** The kind of what was skipped: a file, a vector, or a member of a vector. */
  readonly what: 'file' | 'vector' | 'member';
  /** The path of the file in its folder, the name of the vector, or the name of the member. */
  readonly name: string;
  readonly file: string;
  readonly why: string;
}
