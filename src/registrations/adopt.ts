// Adopts a task or a media buy that exists at a seller already: stores it as an operation, i.e. like a registered call
// (owed.md §10.3). Called by `registrations.adopt`, and by a reconciler that discovers media buys.
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
  /** The URL below `baseUrl` to which the seller sends. Deliveries to this URL are accepted from now on. */
  readonly url?: string | undefined;
  /** The id of a running task. The task is then polled like that of a registered call. Give `taskType` too. */
  readonly taskId?: string | undefined;
  /**
   * The task type, e.g. `update_media_buy`. Required with `taskId`. Default for a media buy alone:
   * `create_media_buy`.
   */
  readonly taskType?: string | undefined;
  /** The id of a running media buy. Delivery reports that name it are assigned to the adopted operation. */
  readonly mediaBuyId?: string | undefined;
  /**
   * The reports that the seller was asked to send for the media buy, so that a reconciler can find missing ones. Give
   * `mediaBuyId` too. The seller is asked for the start and end of the media buy.
   */
  readonly reporting?:
    | (Pick<Reporting, 'frequency'> & {
        /**
         * The metrics that the seller was asked to report; null: none were named, so the seller chooses. Absent:
         * unknown. Then `registrations.apply` does not move these reports to another URL.
         */
        readonly requestedMetrics?: readonly string[] | null | undefined;
      })
    | undefined;
  /** The `account` in the arguments of the call, e.g. `{ account_id: 'a1' }`. Requests about the task send it again. */
  readonly account?: object | undefined;
  /** Your own reference to the operation, as in `create`. */
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

/** Checks the member `reporting` of the arguments of `adopt`. @throws RegistrationError */
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

/** Stores the seller's task or media buy as a new operation. If an operation has it already, returns that operation. */
export async function adoptIn(
  { registrations, routes, hashes, newId, retentionMs }: AdoptOptions,
  adoption: Adoption,
): Promise<OperationSeen> {
  const { agentUrl, taskType = 'create_media_buy', url, taskId, mediaBuyId, reporting } = adoption;
  requireTaskType(taskType);
  const account = accountText(adoption);
  const ref = adoption.ref === undefined ? undefined : checkedRef(adoption.ref);
  const ours = url === undefined ? undefined : routes.ours(url);
  // An adopted URL was made elsewhere, without credentials of this library. So it is stored like a URL for signed
  // webhooks.
  const told = ours && ({ ...ours, scheme: 'signature' } as const);
  const made = {
    seller: sellerIn(adoption),
    taskType,
    state: 'open',
    ...(ref !== undefined && { ref }),
    ...(taskId !== undefined && { taskId }),
    ...(mediaBuyId !== undefined && { mediaBuyId }),
    ...(account !== undefined && { account }),
    // The call was made elsewhere and is never repeated, so it needs no `idempotency_key`.
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
