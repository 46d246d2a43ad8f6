// Takes over a task, a media buy or a URL that a seller already has, as an operation of its own (owed.md §10.3).
// `registrations.adopt` and a reconciler that discovers media buys call it.
import { isJsonObject } from '../codec/members.ts';
import { MAX_TEXT } from '../codec/printable.ts';
import { onlyKnown, text } from '../config/validate.ts';
import type { Hashes } from '../crypto/engine.ts';
import { ConfigError } from '../shared/errors.ts';
import type { StoreRegistrations } from '../stores/store.ts';
import { SELLER } from './option-checks.ts';
import { accountText, checkedRef, requireTaskType } from './answer-json.ts';
import { type OperationSeen, seenOf, type Stored, storedIn } from './operation.ts';
import { type Reporting, requireReporting } from './request.ts';
import type { Routes } from './routes.ts';
import { adopted } from './settling.ts';
import { adoptStream } from './streams.ts';
import { checked, requireSeller, type Seller, sellerIn } from './seller.ts';

/**
 * A running task, a media buy, or a URL that a seller already sends to, which `registrations.adopt` takes over. Use
 * it for calls that were made before you had registrations.
 */
export interface Adoption extends Seller {
  /** The URL below `baseUrl` to which the seller sends. Its deliveries are accepted there from now on. */
  readonly url?: string | undefined;
  /** A running task, which is polled like a registered one. It needs `taskType`. */
  readonly taskId?: string | undefined;
  /**
   * The task type, e.g. `update_media_buy`. Required with `taskId`. Default for a media buy alone:
   * `create_media_buy`.
   */
  readonly taskType?: string | undefined;
  /** A running media buy, by which its delivery reports are assigned. */
  readonly mediaBuyId?: string | undefined;
  /**
   * The reports that the seller was asked to send for the media buy, so that a reconciler can find missing ones. It
   * needs `mediaBuyId`. The seller is asked for the buy's start and end.
   */
  readonly reporting?:
    | (Pick<Reporting, 'frequency'> & {
        /**
         * The metrics that were requested; null: none were. Absent: unknown. Then no move changes the URL for these
         * reports.
         */
        readonly requestedMetrics?: readonly string[] | null | undefined;
      })
    | undefined;
  /**
   * The `account` that is sent when the seller is asked for the task, as in the call's arguments, e.g.
   * `{ account_id: 'a1' }`.
   */
  readonly account?: object | undefined;
  /** Your own reference, as in `create`. */
  readonly ref?: string | undefined;
}

const ADOPTION: Readonly<Record<keyof Adoption, true>> = {
  ...SELLER,
  url: true,
  taskId: true,
  taskType: true,
  mediaBuyId: true,
  reporting: true,
  account: true,
  ref: true,
};

/** Checks the arguments of `adopt`. @throws RegistrationError */
export function requireAdoption(adoption: Adoption, allowLoopback: boolean): void {
  checked(() => onlyKnown('adopt', adoption, ADOPTION));
  requireSeller(adoption, 'signature', allowLoopback);
  const { url, taskId, taskType, mediaBuyId, account, reporting } = adoption;
  if (reporting !== undefined) requireReports(reporting, mediaBuyId);
  checked(() => {
    for (const [name, value] of Object.entries({ taskId, mediaBuyId })) {
      if (value !== undefined && text(name, value).length > MAX_TEXT) {
        throw new ConfigError(`${name}: is longer than ${MAX_TEXT} characters. Report it to the seller.`);
      }
    }
    if (account !== undefined && !isJsonObject(account)) {
      throw new ConfigError(
        "account: is not an object. Give the account as the call's arguments had it, e.g. { account_id: 'a1' }.",
      );
    }
    if (taskId !== undefined && taskType === undefined) {
      throw new ConfigError('adopt: a task needs its taskType. Give e.g. create_media_buy.');
    }
    if (url === undefined && taskId === undefined && mediaBuyId === undefined) {
      throw new ConfigError('adopt: nothing to take over. Give url, taskId, mediaBuyId, or several of them.');
    }
  });
}

/** Checks the reports that `adopt` was given. @throws RegistrationError */
function requireReports(reporting: NonNullable<Adoption['reporting']>, mediaBuyId: string | undefined): void {
  checked(() => {
    onlyKnown('adopt.reporting', reporting, REPORTING);
    if (mediaBuyId === undefined) {
      throw new ConfigError('reporting: needs mediaBuyId. Give the media buy that the reports are of.');
    }
  });
  const { requestedMetrics, ...asked } = reporting;
  requireReporting(requestedMetrics === null ? asked : { ...asked, requestedMetrics });
}

const REPORTING: Readonly<Record<keyof NonNullable<Adoption['reporting']>, true>> = {
  frequency: true,
  requestedMetrics: true,
};

interface AdoptOptions {
  readonly routes: Pick<Routes, 'ours'>;
  readonly registrations: StoreRegistrations;
  readonly hashes: Hashes;
  /** A random UUID. */
  readonly newId: () => string;
  /** The time for which an operation is kept after its end. Ms. */
  readonly retentionMs: number;
}

/** Returns the operation that already has the task or the media buy of the seller. If there is none, it creates one. */
export async function adoptIn(
  { registrations, routes, hashes, newId, retentionMs }: AdoptOptions,
  adoption: Adoption,
): Promise<OperationSeen> {
  const { agentUrl, taskType = 'create_media_buy', url, taskId, mediaBuyId, reporting } = adoption;
  requireTaskType(taskType);
  const account = accountText(adoption);
  const ref = adoption.ref === undefined ? undefined : checkedRef(adoption.ref);
  const ours = url === undefined ? undefined : routes.ours(url);
  // An adopted URL has no credentials of ours, so its scheme is that of signed webhooks.
  const told = ours && ({ ...ours, scheme: 'signature' } as const);
  const made = {
    seller: sellerIn(adoption),
    taskType,
    state: 'open',
    ...(ref !== undefined && { ref }),
    ...(taskId !== undefined && { taskId }),
    ...(mediaBuyId !== undefined && { mediaBuyId }),
    ...(account !== undefined && { account }),
    // The call was made elsewhere and is never repeated, so it needs no request key.
    requestKey: '',
    keyUntil: 0,
    keyMs: 0,
    scheme: 'signature',
    isAdopted: true,
    ...(told && { told: { push: told } }),
    ...(url === undefined && { withoutConfig: true as const }),
  } satisfies Omit<Stored, 'createdAt'>;
  const of = { agentUrl, operationId: newId() };
  return registrations.run(agentUrl, (rows, now) => {
    const step = { rows, now, hashes, retentionMs };
    const row = adopted(step, of, { ...made, createdAt: now });
    if (mediaBuyId !== undefined) {
      const { frequency = null, requestedMetrics: metrics } = reporting ?? {};
      adoptStream(step, row, mediaBuyId, { frequency, metrics, told: told ? { reports: told } : {} });
    }
    return seenOf(row, storedIn(row));
  });
}
