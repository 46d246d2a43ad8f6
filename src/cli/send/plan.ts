import type { PayloadInput, SignedDelivery } from '../../sender/sign.ts';
import { payloadBytes } from '../../sender/delivery.ts';
import { MISTAKES, type Mistake } from '../../testing/mistakes.ts';
import { samplePayloads } from '../../testing/payloads.ts';

/** One POST and the answer that a conforming receiver gives to it. */
export interface Planned {
  readonly sends: string;
  readonly delivery: SignedDelivery;
  /** `2xx`, or the status. */
  readonly status: '2xx' | number;
  readonly code?: string;
}

/** What is done with the delivery, besides sending it. */
export interface PlanFlags {
  readonly mistake?: Mistake;
  readonly tamper?: boolean;
  readonly dupKey?: boolean;
  readonly expired?: boolean;
  readonly replay?: boolean;
  readonly duplicate?: boolean;
  readonly stale?: boolean;
}

type Make = (payload: PayloadInput, mistake?: Mistake) => Promise<SignedDelivery>;

function mistakeOf({ mistake, tamper, dupKey, expired }: PlanFlags): Mistake | undefined {
  if (tamper) return 'tampered-body';
  if (dupKey) return 'duplicate-json-key';
  return expired ? 'expired' : mistake;
}

const good = (sends: string, delivery: SignedDelivery): Planned => ({ sends, delivery, status: '2xx' });

/** A newer status of a task, then an older one of the same task. */
async function stalePlan(make: Make, now: () => number): Promise<Planned[]> {
  const newer = samplePayloads({ now }).tool('completed');
  const older = samplePayloads({ now: () => now() - 60_000 }).tool('working', { task_id: newer['task_id'] });
  return [
    good('completed', await make(newer)),
    good('working, a minute older: stale, and still 2xx', await make(older)),
  ];
}

/** What is sent, in order. */
export async function planOf(
  flags: PlanFlags,
  payload: PayloadInput,
  make: Make,
  now: () => number,
): Promise<Planned[]> {
  if (flags.stale) return stalePlan(make, now);
  const bytes = payloadBytes(payload);
  const mistake = mistakeOf(flags);
  const first = await make(bytes, mistake);
  if (mistake !== undefined) {
    const { status, code } = MISTAKES[mistake];
    return [{ sends: mistake, delivery: first, status, ...(code !== undefined && { code }) }];
  }
  const planned = [good('the delivery', first)];
  if (flags.duplicate) planned.push(good('the same event, signed anew: a duplicate', await make(bytes)));
  if (flags.replay) {
    planned.push({
      sends: 'the same bytes again: a replay',
      delivery: first,
      status: 401,
      code: 'webhook_signature_replayed',
    });
  }
  return planned;
}
