import type { Store } from '../../../../src/index.ts';
import type { AcceptResult } from '../../../../src/stores/index.ts';
import type { Spoil } from './explore.ts';
import type { Invariant } from './account.ts';

/** What another kind of store would tell somebody who has the event. */
function wonAnyway(owner: string, run: number, { pressure }: AcceptResult): AcceptResult {
  const place = { reemission: false, afterTerminal: false, afterFinal: false, ahead: false };
  return { kind: 'won', changed: false, lease: { owner, run, chargedAttempts: 1 }, ...place, pressure };
}

/** Looks, and then writes by what it saw. */
const getThenSet: Spoil = (store, gate) => ({
  ...store,
  accept: async (request) => {
    const seen = request.event ? await store.peek(request.sender, request.event.key) : 'absent';
    await gate('between get and set');
    const answer = await store.accept(request);
    const isFree = (seen === 'absent' || seen === 'free') && request.mode === 'inline';
    return isFree && answer.kind === 'in-flight' ? wonAnyway(request.acceptId, 1, answer) : answer;
  },
});

/** The nonce is burned by itself, before the event. */
const nonceFirst: Spoil = (store, gate) => ({
  ...store,
  accept: async ({ nonce, event, ...request }) => {
    if (!nonce || !event) return store.accept({ ...request, ...(event && { event }) });
    const burned = await store.accept({ ...request, acceptId: `${request.acceptId} nonce`, nonce });
    if (burned.kind !== 'burned') return burned;
    await gate('between nonce and event');
    return store.accept({ ...request, event });
  },
});

/** Every caller is taken for the owner. */
function anyOwner(): Spoil {
  const owners = new Map<string, string>();
  const nameOf = ({ sender, key }: { readonly sender: string; readonly key: string }): string =>
    `${sender} ${key}`;
  return (store) => ({
    ...store,
    accept: async (request) => {
      const answer = await store.accept(request);
      const { sender, event } = request;
      if (answer.kind === 'won' && event) owners.set(nameOf({ sender, key: event.key }), answer.lease.owner);
      return answer;
    },
    complete: (request) =>
      store.complete({ ...request, owner: owners.get(nameOf(request)) ?? request.owner }),
  });
}

/** A lease that somebody else has by now is as good as any. */
const renewedAnyway: Spoil = (store) => ({
  ...store,
  renew: async (request) => {
    await store.renew(request);
    return 'renewed';
  },
});

/** The copy that came last is the one that is handed on. */
const lastCopy: Spoil = (store) => ({
  ...store,
  accept: async (request) => {
    const answer = await store.accept(request);
    if (answer.kind !== 'won') return answer;
    const { body: _first, ...rest } = answer;
    return rest;
  },
});

/** Handlers of one task at once, statuses in any order. */
const withoutTasks: Spoil = (store) => ({
  ...store,
  accept: ({ event, ...request }) => {
    if (!event) return store.accept(request);
    const { task: _task, ...rest } = event;
    return store.accept({ ...request, event: rest });
  },
});

/** Told 2xx, and then taken out: the handler runs from memory. */
const popThenRun: Spoil = (store) => ({
  ...store,
  ...(store.inbox && { inbox: popped(store, store.inbox) }),
});

function popped(store: Store, inbox: NonNullable<Store['inbox']>): NonNullable<Store['inbox']> {
  return {
    ...inbox,
    lease: async (request) => {
      const leased = await inbox.lease(request);
      for (const { sender, key, lease } of leased.events) {
        await store.complete({ sender, key, owner: lease.owner, retentionMs: request.retentionMs });
      }
      return leased;
    },
  };
}

/** A cap that is counted first and written after. */
const uncapped: Spoil = (store) => ({
  ...store,
  accept: (request) => store.accept({ ...request, limits: { ...request.limits, maxRecordsPerSender: 1000 } }),
});

/** Stores that are wrong, and the invariants of which they must break one. */
export const BROKEN: Readonly<Record<string, readonly [() => Spoil, readonly Invariant[]]>> = {
  'accept is get, then set': [
    () => getThenSet,
    ['no two live leases of one event or task', 'the first copy is handled'],
  ],
  'the nonce is burned before the event is there': [
    () => nonceFirst,
    ['an acknowledged event is never lost'],
  ],
  'complete does not look at the owner': [
    anyOwner,
    ['an owner of old changes nothing', 'one owner completes'],
  ],
  'renew does not look at the lease': [() => renewedAnyway, ['an owner of old changes nothing']],
  'the last copy is handed on': [() => lastCopy, ['the first copy is handled']],
  'tasks are not looked at': [
    () => withoutTasks,
    ['no two live leases of one event or task', 'an older status is never applied after a newer one'],
  ],
  'the worker takes events out before it runs them': [
    () => popThenRun,
    ['an acknowledged event is never lost', 'an owner of old changes nothing'],
  ],
  'caps are not looked at': [() => uncapped, ['caps hold']],
};
