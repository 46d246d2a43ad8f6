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
   * The time for which the seller recognises a repeated request by its key, ms. 0: it does not, and no call is made
   * twice. Default: 24 h.
   */
  readonly requestKeyMs?: number;
}

/** An operation that is to be called. */
export interface Operation extends OperationName {
  /** The caller's own reference. */
  readonly ref?: string;
  readonly call: RegisteredCall;
  /** True if an earlier attempt may have been done: it was not answered, or nobody knows if it was made. */
  readonly isRepeat: boolean;
  /** The time until which nobody else calls it. On the store's clock, Unix ms. */
  readonly heldUntil: number;
  /** True for the step of a move: its revision may be out of date. */
  readonly isStep?: true;
}

/** The creation of an operation that is the step of a move (told.md §3.2): its base, and what is stored with it. */
export interface StepOfMove {
  /** The base at which its webhooks are asked for. */
  readonly base: string;
  /** Runs within the step of the store that writes the operation. @returns false: it is not written. */
  readonly begins: (rows: RegistrationRows, now: number, of: OperationName) => boolean;
}

/** The operations that are due to be called again, and those that cannot be. */
export interface DueOperations {
  readonly operations: readonly Operation[];
  /** Nobody can call these again: the seller may have forgotten the request, or encrypted text is lost. */
  readonly orphaned: readonly OperationSeen[];
  /** These cannot be called now, because a secret is missing or the store failed. They are due again after `callMs`. */
  readonly failed: readonly (OperationName & { readonly error: unknown })[];
  readonly nextDueMs?: number;
}

/** The operations of all sellers, in one store. */
export interface Operations {
  /** Creates an operation, which is durable when the promise resolves. @throws RegistrationError */
  readonly create: (request: OperationRequest) => Promise<Operation>;
  /** Creates an operation as the step of a move; undefined if the step does not begin. @throws RegistrationError */
  readonly createStep: (request: OperationRequest, step: StepOfMove) => Promise<Operation | undefined>;
  readonly settle: (of: OperationName, answer: SellerAnswer) => Promise<Settled>;
  /**
   * Turns a call whose registration the seller has refused (`INVALID_REQUEST`) into the same call without it, under a
   * new request key. It is durable when it resolves.
   * @returns undefined, which leaves the error to the caller. That is so if it had no registration, if another process
   * may be calling, or if it is no longer called by this request key.
   */
  readonly refuse: (called: Operation) => Promise<Operation | undefined>;
  /**
   * Ends an operation whose call the seller has refused for good. `orphaned` means that an earlier attempt may have
   * been done; that is kept too if another process may be calling.
   * @returns the state that was stored; undefined if it was answered, or is called under another request key by now.
   */
  readonly reject: (called: Operation, state: Rejected, why?: Why) => Promise<Rejected | undefined>;
  /** Notes an attempt after one that was answered (`Pause.isAnswered`), because this one may stay unanswered. */
  readonly attempted: (called: Operation) => Promise<void>;
  /**
   * Delays the next attempt, because the seller may take the call later.
   * @returns the operation as it is now held; undefined if nobody calls it any more.
   */
  readonly postpone: (called: Operation, pause: Pause) => Promise<Operation | undefined>;
  /**
   * The operations that are due because their callers have not settled them. Each is given to one process for `callMs`.
   */
  readonly due: (max: number, senders: readonly string[]) => Promise<DueOperations>;
  readonly get: (of: OperationName) => Promise<OperationSeen | undefined>;
  /**
   * Finds the operation of an event by its id, or else by its task. If everything fits, the event settles it; if it has
   * ended, it is kept longer. One atomic step.
   */
  readonly find: (told: OperationTold) => Promise<OperationFound | undefined>;
  /** Ends the polling of a task whose end was applied or is DEAD, and its operation. */
  readonly endWatch: (agentUrl: string, taskId: string) => Promise<void>;
  readonly list: (query: OperationQuery) => Promise<OperationPage>;
  /** The number of operations that have not ended and need a missing secret. */
  readonly unreadable: () => Promise<number>;
  /**
   * Encrypts arguments under the newest secret. `needed` counts tokens of open operations that an older secret made.
   */
  readonly rewrap: () => Promise<Damage & { readonly rewrapped: number; readonly needed: number }>;
  readonly forget: (agentUrl: string) => Promise<void>;
}

/** The end of a call that the seller has refused. `orphaned`: it may have been done. */
export type Rejected = 'refused' | 'orphaned';

/** The seller's error, as it is stored. */
export interface Why {
  readonly refusal: string;
  readonly reason: string;
}

/** The pause before a call that was not taken is made again. */
export interface Pause {
  /** The pause that the seller asks for; absent: as long as a call may take. Ms. */
  readonly ms?: number | undefined;
  /** True if each attempt was answered, so none has done anything. */
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
  /** The time that a call may take before another process repeats it. Ms. */
  readonly callMs: number;
  /** The time for which an operation is kept after its end. Ms. */
  readonly retentionMs: number;
  /** The largest number of operations of one seller that have not ended. */
  readonly maxOpen: number;
  /** Ms, of a clock that is never set. */
  readonly now: () => number;
}
