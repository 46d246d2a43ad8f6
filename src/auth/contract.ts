import type { RaiseAlarm } from '../alarms.ts';
import type { CryptoEngine, Hashes } from '../crypto/engine.ts';
import type { Delivery } from '../delivery.ts';
import type { Eventual } from '../eventual.ts';
import type { KeyResolver } from '../keys/contract.ts';
import type { Refusal, Unavailability } from '../outcome.ts';
import type { Protocol } from '../protocol.ts';
import type { AuthPolicy, SenderEntry } from '../senders.ts';

/** The canonical URL that sellers were given (verification.md §4.10): what signatures must cover. */
export interface Target {
  /** Canonical `@target-uri`. */
  readonly targetUri: string;
  /** `host[:port]` of it. */
  readonly authority: string;
}

/** What every scheme needs, made once per receiver. */
export interface AuthContext {
  readonly protocol: Protocol;
  readonly engine: CryptoEngine;
  readonly hashes: Hashes;
  readonly keys: KeyResolver;
  readonly hostCheck: 'strict' | 'off';
  readonly raiseAlarm: RaiseAlarm;
}

/** A delivery whose senders and scheme are known from registration. */
export interface AuthRequest {
  readonly delivery: Delivery;
  readonly target: Target;
  /** All of one scheme. */
  readonly senders: readonly SenderEntry[];
  /** When the delivery arrived, receiver's clock, Unix ms. */
  readonly arrivedAt: number;
}

/** Who sent it, and the nonce to be claimed with the event (signatures only). */
export interface Identity {
  readonly kind: 'authentic';
  readonly sender: SenderEntry;
  readonly scheme: AuthPolicy['scheme'];
  /** SHA-256 of the raw body in hex, where a check has compared it (signatures only). */
  readonly bodyHash?: string;
  readonly nonce?: { readonly keyid: string; readonly nonce: string; readonly expiresAtMs: number };
}

/** Refusals are values, faults on our side that have a check's code too; other faults are thrown. */
export type AuthResult = Identity | Refusal | Unavailability;
export type Authenticate = (context: AuthContext, request: AuthRequest) => Eventual<AuthResult>;
