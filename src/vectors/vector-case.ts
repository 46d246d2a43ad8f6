import type { JsonObject } from '../codec/members.ts';
import { PrintableError } from '../codec/printable-value.ts';
import type { Transport } from '../events/event.ts';
import type { Redirect, Setup, VectorRequest } from './subject.ts';

/**
 * The kind of a conformance vector (`kind` of its result), i.e. the part of the protocol that it tests: signatures,
 * bodies, answers of sellers, and others.
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

/** What must be answered. Members that are absent are not compared. */
export interface Expectation {
  /** The sender is proved and the body is JSON; whether it is a valid envelope is another question. */
  readonly authentic?: boolean;
  /** The sender is proved, whatever its body is. */
  readonly proved?: boolean;
  readonly status?: number;
  /** Null: there is none. */
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

/** One request of a vector, with what must come of it. */
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
  /** Path of the file it was read from, as it was found. */
  readonly file: string;
}

/** Requests to one receiver, one after the other. */
export interface DeliveryCase extends Named {
  readonly kind: 'signature' | 'hmac' | 'bearer' | 'envelope' | 'sequence';
  readonly setup: Setup;
  readonly steps: readonly Step[];
  /** Of the first step's request. */
  readonly signatureBase?: string;
}

/** A URL with its canonical form, or without one. */
export interface CanonicalizationCase extends Named {
  readonly kind: 'canonicalization';
  readonly url: string;
  readonly expected:
    | { readonly refused: false; readonly targetUri?: string; readonly authority?: string }
    /** `code`: of the error that is thrown; absent: not compared. */
    | { readonly refused: true; readonly code?: string };
}

/** A payload with what extraction gives. */
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

/** What a caller does about an error, in the words of the published vectors. */
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

/** A vector, or a file of them, of a kind that is known or looks like one, and that nothing here can judge. */
export interface NotJudgedCase extends Named {
  readonly kind: 'not-judged';
  readonly what: 'file' | 'vector';
  readonly reason: string;
}

/** A vector that cannot be run: the file, or its part, is not what was expected. */
export interface UnreadableCase extends Named {
  readonly kind: 'unreadable';
  readonly reason: string;
}

/** One vector, read. */
export type VectorCase =
  | DeliveryCase
  | CanonicalizationCase
  | ExtractionCase
  | AnswerCase
  | ErrorCase
  | RedirectsCase
  | SecretCase
  | UnreadableCase;

/** What a reader makes of one vector. */
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
