import type { RegistrationRow } from '../contract.ts';
import { unpacked } from '../driver/row-data.ts';
import { turnText } from '../driver/unit.ts';
import type { DueRegistrations, ListedRegistrations, RegistrationSearch } from '../rules/registrations.ts';
import { inTurns } from '../rules/registrations.ts';
import { columnText, fromColumnText } from '../text.ts';
import type { SqliteHandle, SqliteRow, SqliteValue } from './handle.ts';
import { textOf } from './handle.ts';
import type { Scopes } from './scopes.ts';

type Searches = Pick<RegistrationSearch, 'dueRegistrations' | 'nextRegistration' | 'registrations'>;

/**
 * What is looked for among rows of registrations, sender by sender: they are few.
 *
 *     senders  → all of them
 *     due      sender, earliest, latest, limit → its rows that are due between them, the earliest first; by `turnText`, in
 *              the index of records that wait for a task: every database of this version has that
 *     listed   kind, sender, id, list, list, limit → its rows behind that one, by their ids
 */
export function registrationRows(db: SqliteHandle, scopes: Scopes): Searches {
  const senders = db.prepare('SELECT id, name FROM webhook_scope WHERE within = 0');
  const due = db.prepare(
    `SELECT name, data FROM webhook_row WHERE scope = ? AND waits_for >= ? AND waits_for <= ?
      ORDER BY waits_for, id LIMIT ?`,
  );
  const listed = db.prepare(
    `SELECT name, data FROM webhook_row WHERE kind = ? AND scope = ? AND name > ?
      AND (? IS NULL OR json_extract(data, '$.list') = ?) ORDER BY name LIMIT ?`,
  );
  const all = (): readonly Sender[] =>
    (senders.all() as SqliteRow[]).map((row) => ({
      id: Number(row['id']),
      sender: fromColumnText(textOf(row, 'name')),
    }));
  const dueOf = (
    { kind }: Pick<DueRegistrations, 'kind'>,
    of: Sender,
    latest: number,
    limit: number,
  ): readonly RegistrationRow[] =>
    rowsOf(kind, of.sender, due.all(of.id, turnText(kind, 0), turnText(kind, latest), limit));
  const listedOf = (of: ListedRegistrations, sender: string, behind: string): readonly RegistrationRow[] => {
    const { kind, list = null, limit } = of;
    const values: SqliteValue[] = [kind, scopes.id({ sender }), columnText(behind), list, list, limit];
    return rowsOf(kind, sender, listed.all(...values));
  };
  return {
    dueRegistrations: (of, now) => {
      const latest = Math.max(0, Math.floor(now));
      return inTurns(new Map(all().map((one) => [one.sender, dueOf(of, one, latest, of.max)])), of);
    },
    nextRegistration: (kind) => {
      const first = all().flatMap((one) => dueOf({ kind }, one, Number.MAX_SAFE_INTEGER, 1));
      return first.length > 0 ? Math.min(...first.map(({ dueAt }) => dueAt ?? Infinity)) : undefined;
    },
    registrations: (of) => {
      const { sender, after, limit } = of;
      const behind = (name: string): string => (name === after?.sender ? after.id : '');
      if (sender !== undefined) return listedOf(of, sender, behind(sender));
      const names = all().map((one) => one.sender);
      const rows: RegistrationRow[] = [];
      for (const name of names.filter((one) => one >= (after?.sender ?? '')).sort()) {
        rows.push(...listedOf({ ...of, limit: limit - rows.length }, name, behind(name)));
        if (rows.length >= limit) break;
      }
      return rows;
    },
  };
}

interface Sender {
  readonly id: number;
  readonly sender: string;
}

function rowsOf(
  kind: RegistrationRow['kind'],
  sender: string,
  found: readonly unknown[],
): readonly RegistrationRow[] {
  return (found as SqliteRow[]).map(
    (row) =>
      unpacked({
        scope: { sender },
        kind,
        id: textOf(row, 'name'),
        data: textOf(row, 'data'),
      }) as RegistrationRow,
  );
}
