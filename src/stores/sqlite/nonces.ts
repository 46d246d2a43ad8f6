import type { Rows } from '../rules/rows.ts';
import type { SqliteHandle, SqliteRow } from './handle.ts';
import { nullableTextOf, textOf } from './handle.ts';
import type { Senders } from './senders.ts';
import { columnText, fromColumnText } from './text.ts';

/**
 * Burned nonces (verification.md §2.9a, §2.12, §2.13).
 *
 *     find     key id, nonce, now → the event that burned it and the accept that did; expired ones are absent
 *     add      key id, nonce, event, accept, expiry → 1 row where it is new
 *     replace  the same, where it is known or has expired
 *
 * Atomic with the record they are bound to: both are written in the transaction of one accept.
 */
export function nonceRows(db: SqliteHandle, senders: Senders): Pick<Rows, 'nonce' | 'saveNonce'> {
  const find = db.prepare(
    'SELECT record_key, accept_id, expires_at FROM webhook_nonce WHERE keyid_id = ? AND nonce = ? AND expires_at > ?',
  );
  const add = db.prepare(
    'INSERT INTO webhook_nonce (record_key, accept_id, expires_at, keyid_id, nonce) VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING',
  );
  const replace = db.prepare(
    'UPDATE webhook_nonce SET record_key = ?, accept_id = ?, expires_at = ? WHERE keyid_id = ? AND nonce = ?',
  );
  return {
    nonce: ({ sender, keyid, nonce }, now) => {
      const row = find.get(senders.keyidId(sender, keyid), columnText(nonce), now) as SqliteRow | undefined;
      if (row === undefined) return undefined;
      const key = nullableTextOf(row, 'record_key');
      return {
        sender,
        keyid,
        nonce,
        key: key === null ? null : fromColumnText(key),
        acceptId: textOf(row, 'accept_id'),
        expiresAt: Number(row['expires_at']),
      };
    },
    saveNonce: ({ sender, keyid, nonce, key, acceptId, expiresAt }) => {
      const id = senders.keyidId(sender, keyid);
      const values = [key === null ? null : columnText(key), acceptId, expiresAt, id, columnText(nonce)];
      if (Number(add.run(...values).changes) > 0) senders.countNonces(id, 1);
      else replace.run(...values);
    },
  };
}
