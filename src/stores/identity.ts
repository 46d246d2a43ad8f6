import type { RaiseAlarm } from '../shared/alarms.ts';
import type { Store } from './store.ts';

/** A store's identity, where it says one. That it was made just now is told to who asks first: the alarm `store_created`. */
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
