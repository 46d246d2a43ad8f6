// Types of test vectors after reading: their kinds, their requests, and the answers that they expect.
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

/** The expected answer. Absent members are not compared. */
export interface Expectation {
  /** True if the sender must be authenticated and the body be JSON. The envelope may still be invalid. */
  readonly authentic?: boolean;
  /** True if the sender must be authenticated, even if the body is invalid. */
  readonly proved?: boolean;
  readonly status?: number;
  /** The expected code; null: the answer must have no code. */
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
  /** The path of the vector's file, as it was found. */
  readonly file: string;
}

/** A test vector of requests that one receiver gets, one after the other. */
export interface DeliveryCase extends Named {
  readonly kind: 'signature' | 'hmac' | 'bearer' | 'envelope' | 'sequence';
  readonly setup: Setup;
  readonly steps: readonly Step[];
  /** The expected signature base of the first request. */
  readonly signatureBase?: string;
}

/** A test vector with a URL and its canonical form, or without a form if the URL must be refused. */
export interface CanonicalizationCase extends Named {
  readonly kind: 'canonicalization';
  readonly url: string;
  readonly expected:
    | { readonly refused: false; readonly targetUri?: string; readonly authority?: string }
    /** `code`: the code of the thrown error; absent: it is not compared. */
    | { readonly refused: true; readonly code?: string };
}

/** A test vector with a payload, and the transport and data that must be found in it. */
export interface ExtractionCase extends Named {
  readonly kind: 'extraction';
  readonly payload: unknown;
  /** The expected transport. Absent: not compared. Null: there must be none. */
  readonly format?: string | null;
  /** The expected data. Absent: not compared. */
  readonly data?: { readonly value: unknown };
}

/** A test vector with a seller's answer to a call, and the data that callers must read from it. */
export interface AnswerCase extends Named {
  readonly kind: 'answer';
  readonly transport: Transport;
  readonly response: unknown;
  /** The expected data; null: there must be none. */
  readonly data: unknown;
  /** The expected error. Absent: not compared. Null: there must be none. */
  readonly error?: string | null;
}

/** The caller's reaction to an error, in the words of the published vectors. */
export type ErrorAction = 'retry' | 'surface_to_caller' | 'escalate_to_human' | 'generic_error';

/** A test vector with a seller's answer to a failed call, and the error that callers must find in it. */
export interface ErrorCase extends Named {
  readonly kind: 'error';
  readonly transport: Transport;
  readonly response: unknown;
  /** The expected error. Absent: not compared. Null: there must be none. */
  readonly error?: JsonObject | null;
  /** The expected reaction. Absent: not compared. */
  readonly action?: ErrorAction;
}

/** A test vector about a publisher's document that is redirected. */
export interface RedirectsCase extends Named {
  readonly kind: 'redirects';
  readonly target: 'well-known' | 'authoritative';
  readonly url: string;
  readonly redirects: readonly Redirect[];
  /** `finalUrl`: the URL of the document; absent: it is not compared. */
  readonly expected:
    | { readonly refused: false; readonly finalUrl?: string }
    | { readonly refused: true; readonly why?: string };
}

/** A test vector with a shared secret that every receiver must refuse. */
export interface SecretCase extends Named {
  readonly kind: 'secret';
  readonly secret: string;
}

/** A test vector that cannot be judged here, or a file whose vectors are of an unknown kind. */
export interface NotJudgedCase extends Named {
  readonly kind: 'not-judged';
  readonly what: 'file' | 'vector';
  readonly reason: string;
}

/** A test vector that cannot be run, because its file or a part of it has a wrong form. */
export interface UnreadableCase extends Named {
  readonly kind: 'unreadable';
  readonly reason: string;
}

/** A test vector that was read and can be run. */
export type VectorCase =
  | DeliveryCase
  | CanonicalizationCase
  | ExtractionCase
  | AnswerCase
  | ErrorCase
  | RedirectsCase
  | SecretCase
  | UnreadableCase;

/** The result of reading one test vector. */
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
 * A file, a vector, or a member of a vector that `runVectors` found but did not judge, with the reason. It is passed to
 * the option `onSkipped`.
 */
export interface Skipped {
  /** The kind of the skipped item: a file, a vector, or a member of a vector. */
  readonly what: 'file' | 'vector' | 'member';
  /** The file's path in its folder, or the name of the vector or member. */
  readonly name: string;
  readonly file: string;
  readonly why: string;
}
