// Lists rows of registrations by sender and id, a page at a time (`Backend.registrations.list`).
// Called by mysql-backend.ts.
import type { ListRequest, Row } from '../backend.ts';
import { LETTER } from '../sql/row-lines.ts';
import { columnText } from '../text.ts';
import { type Columns, textOf } from './mysql-client.ts';
import { rowsIn } from './mysql-rows.ts';

/** Runs one statement, and returns its results one after the other. */
type Ask = (text: string, values: readonly unknown[]) => Promise<readonly (readonly Columns[])[]>;

/** The largest number of senders whose rows one statement reads. */
const MOST_SENDERS = 64;

/**
 * Lists rows of registrations by sender and id. A join of all senders would read and sort all their rows for each page.
 *
 * So a first statement selects the next senders that have rows, and a second reads the first rows of each along the
 * primary key. The search begins with one sender, and continues with as many senders as will probably fill the page.
 */
export async function listRows(
  ask: Ask,
  table: (name: string) => string,
  { kind, list, sender, limit, after }: ListRequest,
): Promise<readonly Row[]> {
  const of = sender === undefined ? null : columnText(sender);
  const [first, firstId] = after ? [columnText(after.sender), after.id] : [null, ''];
  const isListed = 'r.kind = ? AND r.link <=> COALESCE(?, r.link)';
  const listed = [LETTER[kind], list ?? null];
  const named = `SELECT s.id, s.sender FROM ${table('scope')} s
    WHERE s.keyid = '' AND s.sender >= ? AND NOT s.sender <=> ? AND IF(? IS NULL, s.sender <> '', s.sender = ?)
      AND EXISTS (SELECT 1 FROM ${table('row')} r FORCE INDEX (PRIMARY)
        WHERE r.scope_id = s.id AND ${isListed} AND r.id > IF(s.sender <=> ?, ?, ''))
    ORDER BY s.sender LIMIT ?`;
  const part = (place: number): string => `(SELECT ${place} AS place, r.kind, r.id, r.version, r.data
    FROM ${table('row')} r FORCE INDEX (PRIMARY) WHERE r.scope_id = ? AND ${isListed} AND r.id > ? ORDER BY r.id LIMIT ?)`;
  const found: Row[] = [];
  let [from, past, senders] = [first ?? '', null as string | null, 1];
  for (;;) {
    const left = limit - found.length;
    const values = [from, past, of, of, ...listed, first, firstId, senders];
    const [scopes = []] = await ask(named, values);
    if (scopes.length === 0) return found;
    const behind = (one: Columns): string => (textOf(one['sender']) === first ? firstId : '');
    const parts = scopes.map((_one, place) => part(place));
    // The rows of one sender are read in the order of the primary key. Rows of several senders are sorted here.
    const text =
      parts.length === 1
        ? part(0)
        : `SELECT u.* FROM (${parts.join(' UNION ALL ')}) u ORDER BY u.place, u.id LIMIT ${left}`;
    const [rows = []] = await ask(
      text,
      scopes.flatMap((one) => [one['id'], ...listed, behind(one), left]),
    );
    found.push(
      ...rowsIn(
        rows.map((row) => ({ ...row, sender: scopes[Number(row['place'])]?.['sender'], keyid: NO_KEY })),
      ),
    );
    if (found.length >= limit) return found;
    from = past = textOf(scopes.at(-1)?.['sender']);
    senders = Math.min(
      MOST_SENDERS,
      Math.ceil(((limit - found.length) * scopes.length) / Math.max(rows.length, 1)),
    );
  }
}

/** The `keyid` of a scope that is a sender's own and not one key id's: empty bytes, as the column has it. */
const NO_KEY = new Uint8Array();
