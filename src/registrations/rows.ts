import { utf8 } from '../codec/encoding.ts';
import { parseStrictObject } from '../codec/strict-json.ts';
import { Fault } from '../errors.ts';
import type { RegistrationQuery, RegistrationRow, StoreRegistrations } from '../stores/contract.ts';

/** All rows that a page would have, page by page. */
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

/**
 * JSON that this package has kept in a row.
 * @throws Fault `misconfigured`: it is none any more.
 */
export function storedObject(text: string): Readonly<Record<string, unknown>> {
  const parsed = parseStrictObject(utf8(text));
  if (parsed.ok) return parsed.value;
  throw new Fault(
    'misconfigured',
    `A row of a registration cannot be read: ${parsed.detail}. Restore the store from a backup.`,
  );
}
