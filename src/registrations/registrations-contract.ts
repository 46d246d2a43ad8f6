// The operations of all sellers, as `operationsOf` offers them to the other parts of registrations.
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
  /** The legacy authentication of the webhooks, if the seller cannot sign. */
  readonly scheme?: RouteScheme;
  /** If true, the seller is asked to repeat a token on its webhooks. */
  readonly token?: boolean;
  /**
   * The time for which the seller recognises a repeated request by its key, ms. 0: the seller never does, so no call is
   * repeated. Default: 24 h.
   */
  readonly requestKeyMs?: number;
}

/** An operation whose call is to be made. */
export interface Operation extends OperationName {
  /** The caller's own reference. */
  readonly ref?: string;
  readonly call: RegisteredCall;
  /** True if an earlier attempt may have been done: it had no answer, or it is unknown if it was made. */
  readonly isRepeat: boolean;
  /** The time until which no other process calls it. On the store's clock, Unix ms. */
  readonly heldUntil: number;
  /** True for the step of a move: its revision may be out of date. */
  readonly isStep?: true;
}

/** The base URL of a new operation that is a step of a move (told.md §3.2), and the rows that are stored with it. */
export interface StepOfMove {
  /** The base URL at which the operation's webhooks are requested. */
  readonly base: string;
  /**
   * Runs in the same atomic change of the store that writes the operation. @returns false if the operation must not be
   * written.
   */
  readonly begins: (rows: RegistrationRows, now: number, of: OperationName) => boolean;
}

/** The operations whose call is due again, and those that cannot be called. */
export interface DueOperations {
  readonly operations: readonly Operation[];
  /**
   * Operations that are never called again: the seller may have forgotten the request, or their encrypted text is lost.
   */
  readonly orphaned: readonly OperationSeen[];
  /**
   * Operations that cannot be called now, because a secret is missing or the store failed. They are due again after
   * `callMs`.
   */
  readonly failed: readonly (OperationName & { readonly error: unknown })[];
  readonly nextDueMs?: number;
}

/** The operations of all sellers, in one store. */
export interface Operations {
  /** Creates an operation, which is durable when the promise resolves. @throws RegistrationError */
  readonly create: (request: OperationRequest) => Promise<Operation>;
  /** Creates an operation that is a step of a move. Undefined if the step may not begin. @throws RegistrationError */
  readonly createStep: (request: OperationRequest, step: StepOfMove) => Promise<Operation | undefined>;
  readonly settle: (of: OperationName, answer: SellerAnswer) => Promise<Settled>;
  /**
   * Replaces a call whose registration of webhooks the seller refused (`INVALID_REQUEST`). The new call has none, and
   * another request key. It is durable when the promise resolves.
   * @returns the new call. It is undefined, and the error is the caller's, if the call had no registration of webhooks.
   *   It is undefined too if another process may be calling, or if the request key has changed since.
   */
  readonly refuse: (called: Operation) => Promise<Operation | undefined>;
  /**
   * Ends an operation whose call the seller has refused for good. `orphaned` means that an earlier attempt may have
   * been done. It is stored also if another process may be calling.
   * @returns the state that was stored. Undefined if the operation was answered, or has another request key by now.
   */
  readonly reject: (called: Operation, state: Rejected, why?: Why) => Promise<Rejected | undefined>;
  /** If the previous attempt was answered (`Pause.isAnswered`), notes that the next one may stay unanswered. */
  readonly attempted: (called: Operation) => Promise<void>;
  /**
   * Delays the next attempt, because the seller may accept the call later.
   * @returns the operation with its new `heldUntil`; undefined if it is no longer called.
   */
  readonly postpone: (called: Operation, pause: Pause) => Promise<Operation | undefined>;
  /**
   * Returns the operations that are due because their calls were not settled. Each is reserved for one process for
   * `callMs`.
   */
  readonly due: (max: number, senders: readonly string[]) => Promise<DueOperations>;
  readonly get: (of: OperationName) => Promise<OperationSeen | undefined>;
  /**
   * Finds the operation of an event by its operation id, or else by its task. If everything fits, the event settles the
   * operation. If the operation has ended, it is kept longer. All of this is one atomic change.
   */
  readonly find: (told: OperationTold) => Promise<OperationFound | undefined>;
  /** Ends the polling of a task and its operation, once the event of the task's end was applied or is DEAD. */
  readonly endWatch: (agentUrl: string, taskId: string) => Promise<void>;
  readonly list: (query: OperationQuery) => Promise<OperationPage>;
  /** Returns the number of operations that have not ended and need a missing secret. */
  readonly unreadable: () => Promise<number>;
  /**
   * Encrypts arguments again under the newest secret. `needed` is the number of open operations whose token an older
   * secret made.
   */
  readonly rewrap: () => Promise<Damage & { readonly rewrapped: number; readonly needed: number }>;
  readonly forget: (agentUrl: string) => Promise<void>;
}

/** The state of an operation whose call was refused. `orphaned`: an earlier attempt may have been done. */
export type Rejected = 'refused' | 'orphaned';

/** The seller's error, as it is stored. */
export interface Why {
  readonly refusal: string;
  readonly reason: string;
}

/** The pause before a call that the seller did not accept is repeated. */
export interface Pause {
  /** The pause that the seller asks for; absent: the time that a call may take. Ms. */
  readonly ms?: number | undefined;
  /** True if all attempts were answered with errors, so none has done anything. */
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
  /** The time that a call may take. After it another process repeats the call. Ms. */
  readonly callMs: number;
  /** The time for which an operation is kept after its end. Ms. */
  readonly retentionMs: number;
  /** The largest number of operations of one seller that have not ended. */
  readonly maxOpen: number;
  /** Milliseconds of a monotonic clock. */
  readonly now: () => number;
}
