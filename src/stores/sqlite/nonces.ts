import type { Rows } from '../kernel/rows.ts';
import type { SqliteHandle, SqliteRow } from './handle.ts';
import { nullableTextOf, textOf } from './handle.ts';
import type { Senders } from './senders.ts';
import { columnText, fromColumnText } from './text.ts';

/**
 * Burned nonces (verification.md, section 2, checks 9a, 12, 13).
 *
 *     find     key id, nonce, now → the event that burned it and the accept that did; expired ones are absent
 *     save     key id, nonce, event, accept, expiry → inserted; or replaced, where it is known or has expired
 *
 * Atomic with the record they are bound to: both are written in the transaction of one accept.
 */
export function nonceRows(db: SqliteHandle, senders: Senders): Pick<Rows, 'nonce' | 'saveNonce'> {
  const find = db.prepare(
    'SELECT record_key, accept_id, expires_at FROM webhook_nonce WHERE keyid_id = ? AND nonce = ? AND expires_at > ?',
  );
  const save = db.prepare(
    'INSERT INTO webhook_nonce (keyid_id, nonce, record_key, accept_id, expires_at) VALUES (?, ?, ?, ?, ?) ' +
      'ON CONFLICT DO UPDATE SET record_key = excluded.record_key, accept_id = excluded.accept_id, expires_at = excluded.expires_at',
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
      save.run(id, columnText(nonce), key === null ? null : columnText(key), acceptId, expiresAt);
    },
  };
}
