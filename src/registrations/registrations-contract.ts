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
 * The call to a seller that `registrations.create` registers: the seller, the task type, the arguments, your own
 * reference, and the way in which its webhooks are authenticated.
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
  /** The caller's own name for it. */
  readonly ref?: string;
  readonly call: RegisteredCall;
  /** An attempt before may have been done: it was not answered, or nobody knows whether it was made. */
  readonly isRepeat: boolean;
  /** Until then nobody else calls. On the store's clock, Unix ms. */
  readonly heldUntil: number;
  /** The step of a move: its revision may be old. */
  readonly isStep?: true;
}

/** The creation of an operation that is the step of a move (told.md §3.2): its base, and what is stored with it. */
export interface StepOfMove {
  /** The base at which its webhooks are asked for. */
  readonly base: string;
  /** Within the step of the store that writes it. @returns false: it is not written. */
  readonly begins: (rows: RegistrationRows, now: number, of: OperationName) => boolean;
}

/** Operations that are to be called again, and those that cannot be. */
export interface DueOperations {
  readonly operations: readonly Operation[];
  /** The seller may not know the request any more, or what was encrypted is lost: nobody can call them again. */
  readonly orphaned: readonly OperationSeen[];
  /** They cannot be called now: a secret is missing, or the store failed. They come again after `callMs`. */
  readonly failed: readonly (OperationName & { readonly error: unknown })[];
  readonly nextDueMs?: number;
}

/** Operations of all sellers, in one store. */
export interface Operations {
  /** Durable when it resolves. @throws RegistrationError */
  readonly create: (request: OperationRequest) => Promise<Operation>;
  /** Likewise, as the step of a move; undefined where it does not begin. @throws RegistrationError */
  readonly createStep: (request: OperationRequest, step: StepOfMove) => Promise<Operation | undefined>;
  readonly settle: (of: OperationName, answer: SellerAnswer) => Promise<Settled>;
  /**
   * The seller has refused the field (`INVALID_REQUEST`): the same call without it, under a new request key, durable when it
   * resolves; undefined where it was without it already, where somebody else may be calling, or where it is not being called by this
   * request key any more: then the error is the caller's.
   */
  readonly refuse: (called: Operation) => Promise<Operation | undefined>;
  /**
   * The seller has refused the call for good: nobody makes it again, unless it is made by another request key already, or was
   * answered: then undefined. `orphaned`: whether an attempt before it was done is not known, also where somebody else may be calling.
   */
  readonly reject: (called: Operation, state: Rejected, why?: Why) => Promise<Rejected | undefined>;
  /** Before an attempt after one that was answered (`Pause.isAnswered`): this one may be left without an answer. */
  readonly attempted: (called: Operation) => Promise<void>;
  /**
   * The seller may take it later, and is not called before that.
   * @returns the operation as it is held now; undefined where nobody calls it any more.
   */
  readonly postpone: (called: Operation, pause: Pause) => Promise<Operation | undefined>;
  /** Unsettled ones whose caller has not settled them in time, each given to one process for `callMs`. */
  readonly due: (max: number, senders: readonly string[]) => Promise<DueOperations>;
  readonly get: (of: OperationName) => Promise<OperationSeen | undefined>;
  /**
   * By its id, else by its task. It is settled by what is told where everything fits, and known for longer where it has ended.
   * One atomic step.
   */
  readonly find: (told: OperationTold) => Promise<OperationFound | undefined>;
  /** The task's end was applied, or is DEAD: nobody polls it any more, and its operation has ended. */
  readonly endWatch: (agentUrl: string, taskId: string) => Promise<void>;
  readonly list: (query: OperationQuery) => Promise<OperationPage>;
  /** How many that have not ended need a secret that is not given. */
  readonly unreadable: () => Promise<number>;
  /** Arguments under the newest secret; `needed`: tokens of open ones that an older one has made. */
  readonly rewrap: () => Promise<Damage & { readonly rewrapped: number; readonly needed: number }>;
  readonly forget: (agentUrl: string) => Promise<void>;
}

/** How a call ends that the seller has not done, or may have done. */
export type Rejected = 'refused' | 'orphaned';

/** The seller's error, as it is kept. */
export interface Why {
  readonly refusal: string;
  readonly reason: string;
}

/** When a call is made again that was not taken now. */
export interface Pause {
  /** As the seller asks; absent: as long as a call may take. Ms. */
  readonly ms?: number | undefined;
  /** No attempt has done anything: each was answered. */
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
  /** How long a call may take before another process repeats it. Ms. */
  readonly callMs: number;
  /** How long an operation is known after its end. Ms. */
  readonly retentionMs: number;
  /** Operations of one seller that have not ended. */
  readonly maxOpen: number;
  /** Ms, of a clock that is never set. */
  readonly now: () => number;
}
