import type { Draft } from './draft.ts';
import type { EventWarning, NotificationFamily, Notifications } from './event.ts';
import { isJsonObject } from '../codec/members.ts';
import { notificationFamily } from './notification-family.ts';
import { notificationSchemas } from './notification-schemas.ts';
import { placesOf } from './places.ts';
import { eventWarning } from './warnings.ts';

interface Reading {
  readonly notification?: Notifications[NotificationFamily];
  readonly warnings: readonly EventWarning[];
}

const NONE: Reading = { warnings: [] };

/**
 * The typed payload of a known family (verification.md §7.36): the body itself, or where that does not fit the result or data part in it. As
 * sent: a schema's copy is not what was sent.
 */
export function notificationOf({ envelope, data }: Draft, family: string | undefined): Reading {
  const name = notificationFamily(family ?? '');
  if (!Object.hasOwn(notificationSchemas, name)) return NONE;
  const schema = notificationSchemas[name as NotificationFamily];
  const body = schema.safeParse(envelope);
  if (body.success) return { notification: envelope as typeof body.data, warnings: [] };
  const inner = isJsonObject(data) ? schema.safeParse(data) : body;
  if (inner.success) return { notification: data as typeof inner.data, warnings: [] };
  return { warnings: [eventWarning('invalid_notification', placesOf(inner.error.issues, 'the payload'))] };
}
