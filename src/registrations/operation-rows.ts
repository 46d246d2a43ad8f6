// Reads the rows that registrations store: page by page, without damaged rows, and with their JSON parsed.
// Registrations, poller, reconciler and `proto-webhooks state` use it.
import { utf8 } from '../codec/encoding.ts';
import { parseStrictObject } from '../codec/strict-json.ts';
import { Fault } from '../shared/errors.ts';
import { orLate } from '../shared/time-limits.ts';
import type { JsonObject } from './answer-json.ts';
import { RegistrationError } from './registrations-errors.ts';
import type {
  RegistrationKind,
  RegistrationQuery,
  RegistrationRow,
  RegistrationRows,
  StoreRegistrations,
} from '../stores/store.ts';

/** Yields all rows that match a query, which it reads from the store page by page. */
export async function* allRows(
  registrations: StoreRegistrations,
  which: Pick<RegistrationQuery, 'kind' | 'list' | 'sender'>,
): AsyncGenerator<RegistrationRow> {
  let page = await registrations.page({ ...which, limit: 1000 });
  for (;;) {
    yield* page.rows;
    if (page.next === undefined) return;
    page = await registrations.page({ ...which, limit: 1000, after: page.next });
  }
}

/** Deletes the rows of one kind and seller for which `which` returns true; by default all of them. */
export async function deleteRows(
  registrations: StoreRegistrations,
  kind: RegistrationKind,
  sender: string,
  which: (row: RegistrationRow, rows: RegistrationRows) => boolean = () => true,
): Promise<void> {
  for (let after: string | undefined; ;) {
    const page = await registrations.page({
      kind,
      sender,
      limit: 1000,
      ...(after !== undefined && { after }),
    });
    await registrations.run(sender, (rows) => {
      for (const row of page.rows) {
        if (which(row, rows)) rows.save({ ...row, value: '{}', dueAt: null, expiresAt: 1 });
      }
    });
    if (page.next === undefined) return;
    after = page.next;
  }
}

/** A stored URL or call that `registrations.rewrap` could not encrypt again, and the error. */
export interface DamagedRow {
  readonly kind: 'operation' | 'route';
  /** The operation id, or the id of a URL's row. */
  readonly id: string;
  /** The agent URL of the seller. Absent for a URL whose row cannot be read. */
  readonly agentUrl?: string;
  /** The error. Its code is `secret_missing`, `sealed_text_invalid`, or `misconfigured` for a row that is not JSON. */
  readonly error: RegistrationError | Fault;
}

/**
 * The rows that `registrations.rewrap` could not encrypt again and skipped: the number of stored URLs and calls, and
 * the first of them with their errors.
 */
export interface Damage {
  /** The number of rows that could not be encrypted again. */
  readonly damaged: number;
  /** The first damaged rows, at most 100 of each kind. */
  readonly firstDamaged: readonly DamagedRow[];
}

/**
 * The largest number of damaged rows that are reported. A hundred show what their errors have in common; a million
 * would fill the memory.
 */
const MAX_REPORTED = 100;

/** Runs `step` for each row; counts and skips rows that are damaged. @throws any fault of the store. */
export async function eachRow(
  registrations: StoreRegistrations,
  which: Pick<RegistrationQuery, 'sender'> & { readonly kind: DamagedRow['kind'] },
  step: (row: RegistrationRow) => Promise<void>,
): Promise<Damage> {
  let damaged = 0;
  const firstDamaged: DamagedRow[] = [];
  for await (const row of allRows(registrations, which)) {
    try {
      await step(row);
    } catch (error) {
      if (!isDamage(error)) throw error;
      damaged += 1;
      const agentUrl = agentUrlOf(row);
      if (firstDamaged.length >= MAX_REPORTED) continue;
      firstDamaged.push({ kind: which.kind, id: row.id, ...(agentUrl !== undefined && { agentUrl }), error });
    }
  }
  return { damaged, firstDamaged };
}

function isDamage(error: unknown): error is RegistrationError | Fault {
  return error instanceof RegistrationError || (error instanceof Fault && error.code === 'misconfigured');
}

function agentUrlOf({ sender, value }: RegistrationRow): string | undefined {
  if (sender !== '') return sender;
  const parsed = parseStrictObject(utf8(value));
  const agentUrl = parsed.ok ? parsed.value['agentUrl'] : undefined;
  return typeof agentUrl === 'string' ? agentUrl : undefined;
}

/**
 * Parses the JSON object that this package has stored in a row.
 * @throws Fault `misconfigured` if it is not a JSON object.
 */
export function storedObject(text: string): Readonly<Record<string, unknown>> {
  const parsed = parseStrictObject(utf8(text));
  if (parsed.ok) return parsed.value;
  throw new Fault(
    'misconfigured',
    `A row of a registration cannot be read: ${parsed.detail}. Restore the store from a backup.`,
  );
}

/**
 * Returns the argument `account` for a request to a seller; an empty object if there is no account.
 * @param account the buyer's account as JSON text.
 */
export const accountArgument = (account: string | undefined): { readonly account?: JsonObject } =>
  account === undefined ? {} : { account: storedObject(account) as JsonObject };

/**
 * The time limit for a look-up of senders in the store. It is shorter than the 5 s for which a receiver waits for its
 * senders, so that the error can name the store. Ms.
 */
const LOOK_UP_MS = 4_000;

/** Limits a look-up in the store to `LOOK_UP_MS`. @throws Fault `store_unavailable` if the look-up takes longer. */
export const soon = <T>(work: Promise<T>): Promise<T> =>
  orLate(
    work,
    LOOK_UP_MS,
    () => new Fault('store_unavailable', `registrations: the store has not answered in ${LOOK_UP_MS} ms.`),
  );
