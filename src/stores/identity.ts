// Asks a store for its identity, and raises an alarm if the store was just made (admission.md §7.5).
// Called when a receiver, or registrations, are started.
import type { RaiseAlarm } from '../shared/alarms.ts';
import type { Store } from './store.ts';

/**
 * Returns a store's identity; undefined if the store has none. If the store was made just now, the first caller
 * raises the alarm `store_created`.
 */
export async function toldIdentity(
  store: Pick<Store, 'identity' | 'name'>,
  raiseAlarm: RaiseAlarm,
): Promise<string | undefined> {
  const identity = await store.identity?.();
  if (!identity) return undefined;
  const { id, isNew } = identity;
  if (isNew) {
    raiseAlarm({
      code: 'store_created',
      message: `the ${store.name} store was made just now and remembers no event: its identity is ${id}`,
      storeId: id,
    });
  }
  return id;
}
