import { notANumber } from '../config/validate.ts';
import type { Hashes } from '../crypto/engine.ts';
import { storedId } from '../stages/ids.ts';
import type { RegistrationRow, RegistrationRows, StoreRegistrations } from '../stores/contract.ts';
import { RegistrationError } from './errors.ts';
import { roomBySeller } from './open-limit.ts';
import {
  type SellerAnswer,
  isOpen,
  type OperationFound,
  type OperationName,
  type OperationSeen,
  type OperationTold,
  closedRow,
  rowOf,
  seenOf,
  type Settled,
  type Stored,
  storedIn,
} from './operation.ts';
import { endWatch, found, settled } from './settling.ts';
import {
  accountText,
  argumentsText,
  checkedRef,
  contextText,
  type JsonObject,
  requireTaskType,
} from './json.ts';
import { listOperations, type OperationPage, type OperationQuery } from './list.ts';
import { type RegisteredCall, requireRoom } from './request.ts';
import {
  isOlder,
  operationToken,
  type RandomBytes,
  seal,
  type SealedPlace,
  secretIdOf,
  type Secrets,
  unseal,
} from './secrets.ts';
import { saveSellerRow, sellerRowIn, sellersHeard, watchIn } from './watch.ts';
import type { Route, Routes } from './routes.ts';
import { type RouteScheme, type Seller, sellerIn } from './seller.ts';
import { allRows, type Damage, deleteRows, eachRow, storedObject } from './rows.ts';

/*
 * What a seller was asked for. The row is durable before the call is made, and says all that a repeated call needs to be the
 * same byte for byte: a process that finds it unsettled makes it again, with the same request key. What the caller gave is kept
 * encrypted until the seller has answered.
 *
 *     ∅ ─ create ─► calling ─ settle ─► open (a task is under way) ─ settle ─► ended
 *                      │  ▲ └─────────── settle, terminal ─────────────────────►┘
 *                      │  └─ refuse: once, without the registration, under a new request key; then → refused
 *                      └─ its request key is over, or what is encrypted cannot be read ─► orphaned
 *
 * A webhook settles it as an answer does. Whose a task is says a row of its own, written with the operation's.
 */

/** What a seller is asked for. */
export interface OperationRequest extends Seller {
  /** e.g. `create_media_buy`. */
  readonly taskType: string;
  readonly arguments: JsonObject;
  /** Repeated by the seller on every delivery. At most 16 KiB as JSON. */
  readonly context?: JsonObject;
  /** The caller's own word for it, at most 1 KiB. Never leaves the caller's side. */
  readonly ref?: string;
  /** Legacy authentication of the webhooks, where the seller cannot sign. */
  readonly scheme?: RouteScheme;
  /** Whether the seller is to repeat a token. */
  readonly token?: boolean;
  /** For how long the seller knows a request by its key. Ms; 24 h. 0: it does not, and no call is made twice. */
  readonly requestKeyMs?: number;
}

/** An operation that is to be called. */
export interface Operation {
  readonly agentUrl: string;
  readonly operationId: string;
  readonly call: RegisteredCall;
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
  readonly settle: (of: OperationName, answer: SellerAnswer) => Promise<Settled>;
  /**
   * The seller has refused the field (`INVALID_REQUEST`): the same call without it, under a new request key, durable when it
   * resolves; undefined where it was without it already, or is not being called by this request key any more: then the error is the
   * caller's.
   */
  readonly refuse: (called: Operation) => Promise<Operation | undefined>;
  /**
   * The seller has refused the call for good: nobody makes it again, unless it is made by another request key already.
   * `orphaned`: whether a call before it was done is not known.
   */
  readonly reject: (called: Operation, state: 'refused' | 'orphaned') => Promise<void>;
  /** The seller asks for a pause: it is not called again before that. Ms. */
  readonly postpone: (called: Operation, ms: number) => Promise<void>;
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

export interface OperationsOptions {
  readonly registrations: StoreRegistrations;
  readonly routes: Pick<Routes, 'routeOf'>;
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

const DAY_MS = 86_400_000;

const placeOf = ({ agentUrl, operationId }: OperationName): SealedPlace => ({
  purpose: 'arguments',
  sender: agentUrl,
  id: operationId,
});

export function operationsOf(options: OperationsOptions): Operations {
  const { registrations, routes, secrets, hashes, newId, callMs, retentionMs } = options;
  const takeRoom = roomBySeller(options);
  const ways = { hashes, retentionMs };
  const heard = sellersHeard(options.now);

  const operationOf = async (of: OperationName, stored: Stored, route?: Route): Promise<Operation> => {
    const { taskType, seller, scheme, requestKey, context, sealed = '', token, withoutConfig, base } = stored;
    const given = storedObject(await unseal(secrets, placeOf(of), sealed)) as JsonObject;
    const secret = token === undefined ? undefined : secrets.named(token);
    if (token !== undefined && !secret) {
      throw new RegistrationError(
        'secret_missing',
        `token: made by an unknown secret (${token}). Add it at the end of secrets.`,
      );
    }
    const { operationId } = of;
    return {
      ...of,
      call: {
        taskType,
        arguments: given,
        requestKey,
        ...(context !== undefined && { context: storedObject(context) as JsonObject }),
        ...(!withoutConfig && {
          destination: {
            ...below(base, route ?? (await routes.routeOf(seller, scheme))),
            operationId,
            ...(secret && { token: operationToken(secret, hashes, operationId) }),
          },
        }),
      },
    };
  };

  const canRead = ({ sealed, token }: Stored): boolean =>
    [sealed === undefined ? undefined : secretIdOf(sealed), token].every(
      (id) => id === undefined || secrets.named(id) !== undefined,
    );

  /** Changes a row where there is one. */
  const change = <T>(
    { agentUrl, operationId }: OperationName,
    plan: (row: RegistrationRow, stored: Stored, rows: RegistrationRows, now: number) => T,
  ): Promise<T | undefined> =>
    registrations.run(agentUrl, (rows, now) => {
      const row = rows.get('operation', storedId(operationId, hashes));
      return row && plan(row, storedIn(row), rows, now);
    });

  /** Changes a row whose call is still made as it was: a late refusal says nothing of the call that has taken its place. */
  const changeCalled = <T>(
    { agentUrl, operationId, call }: Operation,
    plan: (stored: Stored, rows: RegistrationRows, now: number) => T,
  ): Promise<T | undefined> =>
    change({ agentUrl, operationId }, (_row, stored, rows, now) =>
      stored.state === 'calling' && stored.requestKey === call.requestKey
        ? plan(stored, rows, now)
        : undefined,
    );

  /** Unless it is called by another request key by now. */
  const orphan = (of: OperationName, requestKey: string | undefined): Promise<OperationSeen | undefined> =>
    change(of, (row, stored, rows, now) => {
      if (stored.state !== 'calling' || stored.requestKey !== requestKey) return undefined;
      rows.save(closedRow(of, stored, 'orphaned', now + retentionMs));
      return seenOf(row, { ...stored, state: 'orphaned' });
    });

  const create = async (request: OperationRequest): Promise<Operation> => {
    const { agentUrl, taskType, scheme = 'signature', requestKeyMs = DAY_MS } = request;
    requireTaskType(taskType);
    requireKeyTime(requestKeyMs);
    const text = argumentsText(request.arguments);
    const context = request.context === undefined ? undefined : contextText(request.context);
    const ref = request.ref === undefined ? undefined : checkedRef(request.ref);
    requireRoom(request.arguments, request.context);
    const account = accountText(request.arguments);
    const of = { agentUrl, operationId: newId() };
    const seller = sellerIn(request);
    // Whatever cannot be had is said before anything is promised.
    let route = await routes.routeOf(seller, scheme);
    const sealed = await seal(secrets, placeOf(of), text, options.randomBytes);
    const requestKey = newId();
    const isWritten = await takeRoom(agentUrl);
    const write = (rows: RegistrationRows, now: number): Stored | undefined => {
      if (!rows.get('route', scheme)) return undefined;
      const made: Stored = {
        seller,
        taskType,
        state: 'calling',
        ...(ref !== undefined && { ref }),
        ...(context !== undefined && { context }),
        createdAt: now,
        requestKey,
        keyUntil: now + requestKeyMs,
        keyMs: requestKeyMs,
        scheme,
        ...(request.token && { token: secrets.newest.id }),
        ...(account !== undefined && { account }),
        sealed,
        base: baseOf(route),
      };
      rows.save(rowOf(of, made, now + callMs, null));
      return made;
    };
    const storing = async (): Promise<Stored> => {
      const stored = await registrations.run(agentUrl, write);
      if (stored) return stored;
      // The seller was forgotten meanwhile, and its URL with it.
      route = await routes.routeOf(seller, scheme);
      return storing();
    };
    const stored = await storing().finally(isWritten);
    return operationOf(of, stored, route);
  };

  return {
    create,
    find: (told) => {
      const isHeard = told.isWebhook === true && heard.isDue(told.agentUrl);
      return registrations.run(told.agentUrl, (rows, now) => {
        if (isHeard) saveSellerRow(rows, told.agentUrl, { ...sellerRowIn(rows), heardAt: now });
        return found({ ...ways, rows, now }, told);
      });
    },
    endWatch: (agentUrl, taskId) =>
      registrations.run(agentUrl, (rows, now) => endWatch({ ...ways, rows, now }, taskId)),
    settle: async (of, answer) =>
      (await change(of, (_row, stored, rows, now) =>
        settled({ ...ways, rows, now }, of, stored, answer, 'safe'),
      )) ?? 'absent',
    refuse: async (called) => {
      const { agentUrl, operationId } = called;
      const of = { agentUrl, operationId };
      const requestKey = newId();
      const again = await changeCalled(called, (stored, rows, now): Stored | undefined => {
        if (stored.withoutConfig) {
          rows.save(closedRow(of, stored, 'refused', now + retentionMs));
          return undefined;
        }
        const without: Stored = { ...stored, withoutConfig: true, requestKey, keyUntil: now + stored.keyMs };
        rows.save(rowOf(of, without, now + callMs, null));
        return without;
      });
      return again && operationOf(of, again);
    },
    reject: (called, state) =>
      changeCalled(called, (stored, rows, now) =>
        rows.save(closedRow(called, stored, state, now + retentionMs)),
      ),
    postpone: (called, ms) =>
      changeCalled(called, (stored, rows, now) =>
        rows.save(rowOf(called, stored, now + Math.max(Math.ceil(ms), callMs), null)),
      ),
    due: async (max, senders) => {
      const found = await registrations.due({ kind: 'operation', max, holdMs: callMs, senders });
      const came = await Promise.all(
        found.rows.map(async (row): Promise<Came> => {
          const of = { agentUrl: row.sender, operationId: row.id };
          let stored: Stored | undefined;
          try {
            stored = storedIn(row);
            // It was put off by `callMs` from the store's now.
            if ((row.dueAt ?? 0) - callMs < stored.keyUntil) {
              return { operation: await operationOf(of, stored) };
            }
          } catch (error) {
            const isLost = error instanceof RegistrationError && error.code === 'sealed_text_invalid';
            if (!isLost) return { failed: { ...of, error } };
          }
          return { orphaned: await orphan(of, stored?.requestKey) };
        }),
      );
      return {
        operations: came.flatMap(({ operation }) => operation ?? []),
        orphaned: came.flatMap(({ orphaned }) => orphaned ?? []),
        failed: came.flatMap(({ failed }) => failed ?? []),
        ...(found.nextDueMs !== undefined && { nextDueMs: found.nextDueMs }),
      };
    },
    get: async (of) => change(of, (row, stored) => seenOf(row, stored)),
    list: (query) => listOperations(registrations, hashes, query),
    unreadable: async () => {
      let count = 0;
      // Of one that is open its token is needed.
      for (const list of ['calling', 'open'] as const) {
        for await (const row of allRows(registrations, { kind: 'operation', list })) {
          if (!canRead(storedIn(row))) count += 1;
        }
      }
      return count;
    },
    rewrap: async () => {
      let rewrapped = 0;
      let needed = 0;
      const damage = await eachRow(registrations, { kind: 'operation' }, async (row) => {
        const of = { agentUrl: row.sender, operationId: row.id };
        const { sealed, token, state } = storedIn(row);
        if (token !== undefined && token !== secrets.newest.id && isOpen(state)) needed += 1;
        if (sealed === undefined || !isOlder(secrets, sealed)) return;
        const text = await unseal(secrets, placeOf(of), sealed);
        const anew = await seal(secrets, placeOf(of), text, options.randomBytes);
        await change(of, (found, stored, rows) => {
          // Where it was answered meanwhile, nothing is encrypted any more.
          if (stored.sealed === sealed) {
            rows.save(rowOf(of, { ...stored, sealed: anew }, found.dueAt, found.expiresAt));
          }
        });
        rewrapped += 1;
      });
      return { rewrapped, needed, ...damage };
    },
    forget: async (agentUrl) => {
      await deleteRows(registrations, 'operation', agentUrl);
      // Tasks of what is registered meanwhile stay.
      const isLeft = (row: RegistrationRow, rows: RegistrationRows): boolean =>
        !rows.get('operation', storedId(watchIn(row).operationId, hashes));
      await deleteRows(registrations, 'watch', agentUrl, isLeft);
    },
  };
}

/** @throws RegistrationError */
function requireKeyTime(ms: unknown): void {
  if (Number.isSafeInteger(ms) && (ms as number) >= 0) return;
  throw new RegistrationError(
    'request_invalid',
    `requestKeyMs: ${notANumber(ms)} not a whole number of ms. Give how long the seller knows a request by its key; 0: it does not.`,
  );
}

const baseOf = ({ url }: Route): string => url.slice(0, url.lastIndexOf('/'));

/** A repeated call names the URL of the first one, though `baseUrl` is another one by now. */
const below = (base: string | undefined, route: Route): Route =>
  base === undefined ? route : { ...route, url: base + route.url.slice(baseOf(route).length) };

/** What came of a row that was due. */
interface Came {
  readonly operation?: Operation;
  readonly orphaned?: OperationSeen | undefined;
  readonly failed?: OperationName & { readonly error: unknown };
}
