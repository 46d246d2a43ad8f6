import assert from 'node:assert/strict';
import type {
  RegistrationKind,
  RegistrationQuery,
  RegistrationRow,
  Store,
  StoreRegistrations,
} from '../../stores/contract.ts';
import { HOUR_MS, SENDER } from './kit.ts';

/** @throws AssertionError where the store has none. */
export function registrationsOf({ registrations }: Store): StoreRegistrations {
  assert.ok(registrations, 'the store has registrations');
  return registrations;
}

/** A row, of which a test says what it is about. */
export interface RowDraft extends Partial<RegistrationRow> {
  /** Ms from the store's now, in the place of `dueAt` and `expiresAt`. */
  readonly dueIn?: number;
  readonly expiresIn?: number;
}

const ROW: RegistrationRow = {
  kind: 'operation',
  sender: SENDER,
  id: 'id',
  value: '{}',
  dueAt: null,
  list: null,
  expiresAt: null,
};

/** Saves it and answers what was saved. */
export async function save(store: Store, { dueIn, expiresIn, ...draft }: RowDraft): Promise<RegistrationRow> {
  const row = { ...ROW, ...draft };
  return registrationsOf(store).run(row.sender, (rows, now) => {
    const saved = {
      ...row,
      dueAt: dueIn === undefined ? row.dueAt : Math.ceil(now + dueIn),
      expiresAt: expiresIn === undefined ? row.expiresAt : now + expiresIn,
    };
    rows.save(saved);
    return saved;
  });
}

export async function get(store: Store, of: RowDraft = {}): Promise<RegistrationRow | undefined> {
  const { kind, sender, id } = { ...ROW, ...of };
  return registrationsOf(store).run(sender, (rows) => rows.get(kind, id));
}

/** Ids of the rows that are due, which are then held for an hour. */
export async function dueIds(
  store: Store,
  { kind = 'watch', max = 100, senders = [] }: DueDraft = {},
): Promise<readonly string[]> {
  const { rows } = await registrationsOf(store).due({ kind, max, holdMs: HOUR_MS, senders });
  return rows.map(({ id }) => id);
}

interface DueDraft {
  readonly kind?: RegistrationKind;
  readonly max?: number;
  readonly senders?: readonly string[];
}

/** `sender id` of all rows, page by page. */
export async function listedIds(
  store: Store,
  query: Partial<RegistrationQuery> = {},
): Promise<readonly string[]> {
  const found: string[] = [];
  const asked = { kind: 'operation', limit: 1000, ...query } as const;
  let page = await registrationsOf(store).page(asked);
  for (;;) {
    assert.ok(page.rows.length <= asked.limit, 'a page is no longer than asked for');
    found.push(...page.rows.map(({ sender, id }) => `${sender} ${id}`));
    if (page.next === undefined) return found;
    page = await registrationsOf(store).page({ ...asked, after: page.next });
  }
}
