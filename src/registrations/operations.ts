// Stores operations (registered calls to sellers), from before the call is made until the end (calls.md §1, §2).
// Registrations, events and the poller change them here. The row of an operation is durable before the call is made,
// and has all that a repeat needs to send the same bytes. README.md has the states of an operation.
import { notANumber } from '../config/validate.ts';
import type { Hashes } from '../crypto/engine.ts';
import { storedId } from '../stages/ids.ts';
import type { RegistrationRow, RegistrationRows } from '../stores/store.ts';
import { type CallTold, isSameUrl, type OurUrl } from '../windows/told.ts';
import type {
  Operation,
  OperationRequest,
  Operations,
  OperationsOptions,
  StepOfMove,
} from './registrations-contract.ts';
import { RegistrationError } from './registrations-errors.ts';
import {
  accountText,
  argumentsText,
  checkedRef,
  contextText,
  type JsonObject,
  requireTaskType,
} from './answer-json.ts';
import { askedReports } from './asked-reports.ts';
import { listOperations } from './list-operations.ts';
import { roomBySeller } from './open-limit.ts';
import {
  closedRow,
  isOpen,
  type OperationName,
  type OperationSeen,
  NotRepeatable,
  rowOf,
  seenOf,
  type Stored,
  storedIn,
} from './operation.ts';
import { requireRoom } from './request.ts';
import type { Route } from './routes.ts';
import { reportsToldBy } from './told/our-url.ts';
import { givenAt } from './told/url-row.ts';
import { allRows, deleteRows, eachRow, storedObject } from './operation-rows.ts';
import {
  isLostText,
  isOlder,
  operationToken,
  seal,
  type SealedPlace,
  secretIdOf,
  unseal,
} from './secrets.ts';
import { type RouteScheme, type Seller, sellerIn } from './seller.ts';
import { endWatch, found, settled } from './settling.ts';
import { saveSellerRow, sellerRowIn, sellersHeard, watchIn } from './watch-task.ts';

export type {
  DueOperations,
  Operation,
  OperationRequest,
  Operations,
  OperationsOptions,
} from './registrations-contract.ts';

const DAY_MS = 86_400_000;

/** The number of transient errors after which each pause lasts at least `callMs`, even if the seller asks for less. */
const PROMPT_PAUSES = 3;

/** An operation that was just written, and the time until which no other process makes its call. */
interface Written extends Pick<Operation, 'heldUntil'> {
  readonly made: Stored;
}

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

  const pushTold = ({ url }: Route, scheme: RouteScheme): CallTold => {
    const ours = routes.ours(url);
    return ours ? { push: { ...ours, scheme } } : {};
  };

  /**
   * Returns the URL and credentials that the first attempt sent, even if the seller's route (URL) or the base URL has
   * changed since.
   * @throws NotRepeatable if the credentials of that URL were retired.
   */
  const pushRoute = async (seller: Seller, scheme: RouteScheme, told: Stored['told']): Promise<Route> => {
    const known = told?.push ? await routes.routeAt(told.push) : undefined;
    const route = known ?? (await routes.routeOf(seller, scheme, told?.push?.base));
    if (told?.push && !isSameUrl(route, told.push)) throw new NotRepeatable();
    return route;
  };

  const operationOf = async (
    of: OperationName,
    stored: Stored,
    held: Pick<Operation, 'isRepeat' | 'heldUntil'>,
    route?: Route,
  ): Promise<Operation> => {
    const { taskType, seller, scheme, requestKey, context, sealed = '', token, withoutConfig, told } = stored;
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
      ...held,
      ...(stored.ref !== undefined && { ref: stored.ref }),
      ...(stored.isStep && { isStep: true }),
      call: {
        taskType,
        arguments: given,
        requestKey,
        ...(context !== undefined && { context: storedObject(context) as JsonObject }),
        ...(!withoutConfig && {
          destination: {
            ...(route ?? (await pushRoute(seller, scheme, told))),
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

  /** Runs `plan` on an operation's row in one store transaction. Returns undefined if there is no such row. */
  const change = <T>(
    { agentUrl, operationId }: OperationName,
    plan: (row: RegistrationRow, stored: Stored, rows: RegistrationRows, now: number) => T,
  ): Promise<T | undefined> =>
    registrations.run(agentUrl, (rows, now) => {
      const row = rows.get('operation', storedId(operationId, hashes));
      return row && plan(row, storedIn(row), rows, now);
    });

  /**
   * Runs `plan` only if the call is unanswered and still has the `idempotency_key` of `called`. So a late refusal
   * cannot affect the call that replaced the refused one.
   */
  const changeCalled = <T>(
    { agentUrl, operationId, call }: Operation,
    plan: (stored: Stored, rows: RegistrationRows, now: number, row: RegistrationRow) => T,
  ): Promise<T | undefined> =>
    change({ agentUrl, operationId }, (row, stored, rows, now) =>
      stored.state === 'calling' && stored.requestKey === call.requestKey
        ? plan(stored, rows, now, row)
        : undefined,
    );

  // Removes `isAnswered` (all attempts were answered), because the next attempt may stay unanswered. The reservation of
  // another process ends: it does not know of this attempt, and must not take the call for refused.
  const attempted = async (called: Operation): Promise<void> => {
    await changeCalled(called, ({ isAnswered, ...stored }, rows, _now, { dueAt, expiresAt }) => {
      const until = dueAt === called.heldUntil ? dueAt : (dueAt ?? 0) + 1;
      if (isAnswered || until !== dueAt) rows.save(rowOf(called, stored, until, expiresAt));
    });
  };

  /**
   * Marks an operation as orphaned (nobody knows if it was done), unless it was answered or its call has another
   * `idempotency_key` by now.
   */
  const orphan = (
    of: OperationName,
    requestKey: string | undefined,
    why: Pick<Stored, 'reason'>,
  ): Promise<OperationSeen | undefined> =>
    change(of, (row, stored, rows, now) => {
      if (stored.state !== 'calling' || stored.requestKey !== requestKey) return undefined;
      rows.save(closedRow(of, { ...stored, ...why }, 'orphaned', { now, retentionMs }));
      return seenOf(row, { ...stored, ...why, state: 'orphaned' });
    });

  const createStep = async (request: OperationRequest, step?: StepOfMove): Promise<Operation | undefined> => {
    const { agentUrl, taskType, scheme = 'signature', requestKeyMs = DAY_MS } = request;
    requireTaskType(taskType);
    requireKeyTime(requestKeyMs);
    const text = argumentsText(request.arguments);
    const context = request.context === undefined ? undefined : contextText(request.context);
    const ref = request.ref === undefined ? undefined : checkedRef(request.ref);
    requireRoom(request.arguments, request.context);
    const account = accountText(request.arguments);
    const reports = askedReports(taskType, request.arguments);
    const reportsTold = reportsToldBy(taskType, request.arguments, routes.ours);
    const of = { agentUrl, operationId: newId() };
    const seller = sellerIn(request);
    // Everything that can fail is done before the operation is written.
    let route = await routes.routeOf(seller, scheme, step?.base);
    const sealed = await seal(secrets, placeOf(of), text, options.randomBytes);
    const requestKey = newId();
    const isWritten = await takeRoom(agentUrl);
    const write = (rows: RegistrationRows, now: number): Written | 'forgotten' | 'retired' | undefined => {
      const told = { ...reportsTold, ...pushTold(route, scheme) };
      if (!rows.get('route', scheme) || isRetired(rows, told.push, hashes)) return 'forgotten';
      if (isRetired(rows, told.reports, hashes)) return 'retired';
      if (step && !step.begins(rows, now, of)) return undefined;
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
        ...(reports && { reports }),
        sealed,
        told,
        ...(step && { isStep: true }),
      };
      const heldUntil = now + callMs;
      rows.save(rowOf(of, made, heldUntil, null));
      return { made, heldUntil };
    };
    const storing = async (): Promise<Written | undefined> => {
      const written = await registrations.run(agentUrl, write);
      if (written === 'retired') throw new RegistrationError('request_invalid', RETIRED);
      if (written !== 'forgotten') return written;
      // After the route (the URL for the seller) was read, the seller was deleted by `forget`, or the URL was retired.
      // So a new route is made.
      route = await routes.routeOf(seller, scheme, step?.base);
      return storing();
    };
    const written = await storing().finally(isWritten);
    return written && operationOf(of, written.made, { isRepeat: false, heldUntil: written.heldUntil }, route);
  };
  const create = async (request: OperationRequest): Promise<Operation> =>
    (await createStep(request)) as Operation;

  return {
    create,
    createStep,
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
      const again = await changeCalled(called, (stored, rows, now, row) => {
        if (stored.withoutConfig || row.dueAt !== called.heldUntil) return undefined;
        const without: Stored = { ...stored, withoutConfig: true, requestKey, keyUntil: now + stored.keyMs };
        const heldUntil = now + callMs;
        rows.save(rowOf(of, without, heldUntil, null));
        return { without, heldUntil };
      });
      return again && operationOf(of, again.without, { isRepeat: false, heldUntil: again.heldUntil });
    },
    reject: (called, state, why) =>
      changeCalled(called, (stored, rows, now, row) => {
        const is = row.dueAt === called.heldUntil ? state : 'orphaned';
        rows.save(closedRow(called, { ...stored, ...why }, is, { now, retentionMs }));
        return is;
      }),
    attempted,
    postpone: async (called, { ms, isAnswered }) => {
      const heldUntil = await changeCalled(called, (stored, rows, now, row) => {
        const { isAnswered: _was, ...is } = stored;
        const busy = (stored.busy ?? 0) + 1;
        const leastMs = busy > PROMPT_PAUSES ? callMs : 0;
        const dueAt = ms === undefined ? row.dueAt : now + Math.max(Math.ceil(ms), leastMs);
        const isSure = isAnswered && row.dueAt === called.heldUntil;
        rows.save(rowOf(called, { ...is, busy, ...(isSure && { isAnswered: true }) }, dueAt, null));
        return dueAt;
      });
      return typeof heldUntil === 'number' ? { ...called, heldUntil } : undefined;
    },
    due: async (max, senders) => {
      const found = await registrations.due({ kind: 'operation', max, holdMs: callMs, senders });
      const came = await Promise.all(
        found.rows.map(async (row): Promise<Came> => {
          const of = { agentUrl: row.sender, operationId: row.id };
          let stored: Stored | undefined;
          let why: Pick<Stored, 'reason'> = {};
          try {
            stored = storedIn(row);
            // The store has set `dueAt` to the current time plus `callMs`: until then no other process makes this call.
            const heldUntil = row.dueAt ?? 0;
            if (heldUntil - callMs < stored.keyUntil) {
              const operation = await operationOf(of, stored, { isRepeat: !stored.isAnswered, heldUntil });
              if (stored.isAnswered) await attempted(operation);
              return { operation };
            }
          } catch (error) {
            if (error instanceof NotRepeatable) why = { reason: error.message };
            else if (!isLostText(error)) return { failed: { ...of, error } };
          }
          return { orphaned: await orphan(of, stored?.requestKey, why) };
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
      // An open operation has no encrypted arguments left, but its token still needs the secret.
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
          // If the operation was settled meanwhile, its encrypted arguments are gone, and nothing is written.
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
      await deleteRows(registrations, 'stream', agentUrl);
      await deleteRows(registrations, 'snapshot', agentUrl);
      // The row of a task is kept if its operation still exists: that operation was registered during this deletion.
      const isLeft = (row: RegistrationRow, rows: RegistrationRows): boolean =>
        !rows.get('operation', storedId(watchIn(row).operationId, hashes));
      await deleteRows(registrations, 'watch', agentUrl, isLeft);
    },
  };
}

/** True if the URL was made by this library and was retired, so it must not be given to a seller any more. */
const isRetired = (rows: RegistrationRows, url: OurUrl | null | undefined, hashes: Hashes): boolean =>
  !!url && givenAt(rows, url, hashes)?.retiredAt !== undefined;

const RETIRED =
  'arguments.reporting_webhook: its URL was retired, and reports to it would be lost. Ask reportingWebhook() for one with each call.';

/** Checks the option `requestKeyMs` of `create`. @throws RegistrationError */
function requireKeyTime(ms: unknown): void {
  if (Number.isSafeInteger(ms) && (ms as number) >= 0) return;
  throw new RegistrationError(
    'request_invalid',
    `requestKeyMs: ${notANumber(ms)} not a whole number of ms. Give the time for which the seller knows a request by its key, or 0 if it does not.`,
  );
}

/** The outcome for one operation that was due: it can be called, or was orphaned, or could not be read. */
interface Came {
  readonly operation?: Operation;
  readonly orphaned?: OperationSeen | undefined;
  readonly failed?: OperationName & { readonly error: unknown };
}
