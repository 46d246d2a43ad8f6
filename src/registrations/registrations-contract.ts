// Declares the interface by which registrations create, find and change operations (registered calls to sellers).
// `operationsOf` implements it.
import type { Hashes } from '../crypto/engine.ts';
import type { RegistrationRows, StoreRegistrations } from '../stores/store.ts';
import type { JsonObject } from './answer-json.ts';
import type { OperationPage, OperationQuery } from './list-operations.ts';
import type {
  OperationFound,
  OperationName,
  OperationSeen,
  OperationTold,
  SellerAnswer,
  Settled,
} from './operation.ts';
import type { RegisteredCall } from './request.ts';
import type { Routes } from './routes.ts';
import type { Damage } from './operation-rows.ts';
import type { RandomBytes, Secrets } from './secrets.ts';
import type { RouteScheme, Seller } from './seller.ts';

/**
 * The call to a seller that `registrations.create` registers: seller, task type, arguments, your own reference, and the
 * way in which its webhooks are authenticated.
 */
export interface OperationRequest extends Seller {
  /** The task type, e.g. `create_media_buy`. */
  readonly taskType: string;
  /** The arguments of the call, without the members that the package adds to register webhooks. */
  readonly arguments: JsonObject;
  /** The context, which the seller repeats on every delivery. At most 16 KiB as JSON. */
  readonly context?: JsonObject;
  /** Your own reference, at most 1 KiB. It is never sent to the seller. */
  readonly ref?: string;
  /**
   * The authentication of the webhooks: the deprecated HMAC or bearer token, if the seller cannot sign. Default:
   * `signature`.
   */
  readonly scheme?: RouteScheme;
  /** If true, the seller is asked to repeat a token on its webhooks. */
  readonly token?: boolean;
  /**
   * The time for which the seller recognises a repeated call by its `idempotency_key`, ms. 0: the seller never does, so
   * no call is repeated. Default: 24 h.
   */
  readonly requestKeyMs?: number;
}

/** An operation whose call can be made: its arguments are decrypted. */
export interface Operation extends OperationName {
  /** The caller's own reference. */
  readonly ref?: string;
  readonly call: RegisteredCall;
  /** True if an earlier attempt may have been done: it had no answer, or it is unknown if it was made at all. */
  readonly isRepeat: boolean;
  /** The time until which no other process makes the call. On the store's clock, Unix ms. */
  readonly heldUntil: number;
  /**
   * True for a step of a move, i.e. a call that only gives the seller another URL. The revision in its arguments may be
   * outdated.
   */
  readonly isStep?: true;
}

/**
 * The additions for a new operation that is a step of a move, i.e. that gives the seller another URL (told.md §3.2).
 */
export interface StepOfMove {
  /** The base URL below which the operation's webhooks are requested. */
  readonly base: string;
  /**
   * Writes the move's rows, in the store transaction that also writes the operation.
   * @returns false if the operation must not be written.
   */
  readonly begins: (rows: RegistrationRows, now: number, of: OperationName) => boolean;
}

/** The operations that were due: those whose calls can be repeated, and those whose calls cannot. */
export interface DueOperations {
  readonly operations: readonly Operation[];
  /**
   * Operations whose calls are never made again. The seller may have forgotten the `idempotency_key`, the encrypted
   * arguments are damaged, or the URL's credentials were retired.
   */
  readonly orphaned: readonly OperationSeen[];
  /**
   * Operations whose calls cannot be made now, because a secret is missing or the store failed. They are due again
   * after `callMs`.
   */
  readonly failed: readonly (OperationName & { readonly error: unknown })[];
  readonly nextDueMs?: number;
}

/** The operations (registered calls) of all sellers, in one store. */
export interface Operations {
  /** Writes a new operation, which is durable when the promise resolves. @throws RegistrationError */
  readonly create: (request: OperationRequest) => Promise<Operation>;
  /**
   * Writes a new operation that is a step of a move. Undefined if `step.begins` returns false.
   * @throws RegistrationError
   */
  readonly createStep: (request: OperationRequest, step: StepOfMove) => Promise<Operation | undefined>;
  readonly settle: (of: OperationName, answer: SellerAnswer) => Promise<Settled>;
  /**
   * Replaces a call for which the seller refused to register webhooks (`INVALID_REQUEST`). The new call registers none,
   * and has another `idempotency_key`. The new call is durable when the promise resolves.
   * @returns the new call. Undefined if the old call registered no webhooks, another process may be calling, or the
   *   `idempotency_key` has changed since. The caller then gets the seller's error.
   */
  readonly refuse: (called: Operation) => Promise<Operation | undefined>;
  /**
   * Ends an operation whose call the seller has refused for good. `orphaned` means that an earlier attempt may have
   * been done. If another process may be calling, `orphaned` is stored even for `refused`.
   * @returns the state that was stored. Undefined if the operation was answered, or has another `idempotency_key` by
   *   now.
   */
  readonly reject: (called: Operation, state: Rejected, why?: Why) => Promise<Rejected | undefined>;
  /** If all attempts so far were answered (`Pause.isAnswered`), records that the next attempt may stay unanswered. */
  readonly attempted: (called: Operation) => Promise<void>;
  /**
   * Delays the next attempt of a call that the seller may accept later.
   * @returns the operation with its new `heldUntil`; undefined if the call is no longer made.
   */
  readonly postpone: (called: Operation, pause: Pause) => Promise<Operation | undefined>;
  /**
   * Returns the operations that are due because their calls were not settled. Each of them is reserved for this process
   * for `callMs`.
   */
  readonly due: (max: number, senders: readonly string[]) => Promise<DueOperations>;
  readonly get: (of: OperationName) => Promise<OperationSeen | undefined>;
  /**
   * Finds the operation of an event by its operation id, or else by its task or its media buy. Records the event in the
   * operation unless their ids contradict each other. If the operation had ended before, the expiry of its row is
   * postponed. All of this is one store transaction.
   */
  readonly find: (told: OperationTold) => Promise<OperationFound | undefined>;
  /**
   * Ends the polling of a task, and the task's operation. Called once the event of the task's end was handled, or given
   * up as DEAD.
   */
  readonly endWatch: (agentUrl: string, taskId: string) => Promise<void>;
  readonly list: (query: OperationQuery) => Promise<OperationPage>;
  /** Returns the number of operations that have not ended and need a secret which is not in `secrets`. */
  readonly unreadable: () => Promise<number>;
  /**
   * Encrypts the arguments of calls again under the newest secret. `needed` is the number of open operations whose
   * token was derived from an older secret.
   */
  readonly rewrap: () => Promise<Damage & { readonly rewrapped: number; readonly needed: number }>;
  readonly forget: (agentUrl: string) => Promise<void>;
}

/** The final state of an operation whose call was refused. `orphaned`: an earlier attempt may have been done. */
export type Rejected = 'refused' | 'orphaned';

/** The seller's error as it is stored with a refused operation: its code, and its text. */
export interface Why {
  readonly refusal: string;
  readonly reason: string;
}

/** The pause before the next attempt of a call that the seller did not accept. */
export interface Pause {
  /** The pause that the seller asks for. Absent: the next attempt stays due at its stored time, after `callMs`. Ms. */
  readonly ms?: number | undefined;
  /** True if all attempts so far were answered with errors which mean that nothing was done. */
  readonly isAnswered: boolean;
}

export interface OperationsOptions {
  readonly registrations: StoreRegistrations;
  readonly routes: Pick<Routes, 'routeOf' | 'routeAt' | 'ours'>;
  readonly secrets: Secrets;
  readonly hashes: Hashes;
  readonly randomBytes: RandomBytes;
  /** A random UUID. */
  readonly newId: () => string;
  /** The time that a call may take, ms. After that another process repeats the call. */
  readonly callMs: number;
  /** The time for which an operation is kept after its end. Ms. */
  readonly retentionMs: number;
  /** The largest number of operations of one seller that have not ended. */
  readonly maxOpen: number;
  /** Milliseconds of a monotonic clock. */
  readonly now: () => number;
}
