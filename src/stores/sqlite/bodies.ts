import type { SqliteHandle, SqliteRow } from './handle.ts';
import type { Senders } from './senders.ts';

/**
 * First copies of records that are not done, by the place that the record has of its body. An empty one has a row too.
 *
 *     keep  body → its id, the place, which `last_insert_rowid()` gives to the record's INSERT
 *     drop  place → how many bytes are gone; none where the place is 0
 */
export interface Bodies {
  keep(senderId: number, body: Uint8Array): void;
  drop(senderId: number, place: number): void;
}

export function bodiesOf(db: SqliteHandle, senders: Senders): Bodies {
  // Bytes of no length are null to some drivers. And one that is alone is no parameter to libsql, but its parameters.
  const keep = db.prepare("INSERT INTO webhook_body (body) VALUES (iif(? = 0, x'', ?))");
  const drop = db.prepare('DELETE FROM webhook_body WHERE id = ? RETURNING length(body) AS bytes');
  return {
    keep: (senderId, body) => {
      keep.run(body.length, body.length === 0 ? null : body);
      senders.count(senderId, { bytes: body.length });
    },
    drop: (senderId, place) => {
      if (place === 0) return;
      const [row] = drop.all(place) as SqliteRow[];
      if (row) senders.count(senderId, { bytes: -Number(row['bytes']) });
    },
  };
}
