import { deliveryId } from '../delivery-id.ts';
import { storedEvent } from '../stages/ended.ts';
import { idsOf } from '../stages/ids.ts';
import type { ReadContext } from '../stages/read.ts';
import type { InboxRecord } from '../stores/contract.ts';
import type { SeenEvent } from './contract.ts';

/** A record with the ids by which alarms and log lines name it. */
export function seenEvent(record: InboxRecord, context: ReadContext): SeenEvent {
  const { sender, key } = record;
  return {
    ...record,
    deliveryId: deliveryId(context.hashes, sender, key),
    ...idsOf(storedEvent(record, context)),
  };
}
