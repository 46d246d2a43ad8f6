import type { AcceptRequest, AcceptResult, Store } from '../stores/contract.ts';
import type { Running } from './running.ts';

export interface AcceptAloneContext {
  readonly store: Pick<Store, 'accept'>;
  readonly running: Pick<Running, 'reserve' | 'release'>;
  readonly newId: () => string;
}

/**
 * `Store.accept`, and once more where the event is a suspect: then the one place of this process is kept for it before it
 * is leased, so that it is the only suspect that a crash can be charged to (admission.md §4.6). Where the place is taken,
 * what the store said at first: `in-flight` with `suspect`.
 */
export async function acceptAlone(
  request: AcceptRequest,
  deliveryId: string,
  { store, running, newId }: AcceptAloneContext,
): Promise<AcceptResult> {
  const first = await store.accept(request);
  if (first.kind !== 'in-flight' || !first.suspect || !running.reserve(deliveryId)) return first;
  // The first accept has bound the nonce; this one is another accept of the same event without it.
  const { nonce: _bound, ...bare } = request;
  const again = { ...bare, acceptId: newId(), alone: true, ...(first.replay && { replay: true }) };
  let isWon = false;
  try {
    const result = await store.accept(again);
    isWon = result.kind === 'won';
    return result;
  } finally {
    if (!isWon) running.release();
  }
}
