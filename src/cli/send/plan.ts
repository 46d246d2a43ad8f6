import type { DeliveryReport, TaskStatus } from '../../events/event.ts';
import { payloadBytes } from '../../sender/delivery.ts';
import type { PayloadInput, SignedDelivery } from '../../sender/sign.ts';
import { type SampleFamily, samplePayloads } from '../../testing/payloads.ts';
import { type Mistake, MISTAKES } from '../../testing/mistakes.ts';
import { readInput } from '../files.ts';
import type { CliContext } from '../shell.ts';

/** Which sample to send. */
export interface PayloadFlags {
  /** `tool` where absent. */
  readonly transport?: 'tool' | 'agent';
  /** `completed` where absent. */
  readonly status?: TaskStatus;
  readonly report?: DeliveryReport['notification_type'];
  readonly family?: SampleFamily;
  readonly body?: string;
}

export const STATUSES: readonly TaskStatus[] = [
  'submitted',
  'working',
  'input-required',
  'auth-required',
  'completed',
  'failed',
  'canceled',
  'rejected',
];
/** A body to send: bytes of a file as they are, or a sample. */
export async function payloadOf(flags: PayloadFlags, context: CliContext): Promise<PayloadInput> {
  if (flags.body !== undefined) return readInput(flags.body, 'the body to send', context);
  const payloads = samplePayloads({ now: context.now });
  if (flags.report !== undefined) return payloads.report(flags.report);
  if (flags.family !== undefined) return payloads.family(flags.family);
  const { transport = 'tool', status = 'completed' } = flags;
  return payloads[transport](status);
}

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

/** A delivery as a raw HTTP request, which `explain` reads again. */
export function httpText({ method, url, headers, body }: SignedDelivery): string {
  const [, host = '', target = ''] = /^[^:]+:\/\/([^/?#]*)([^#]*)/.exec(url) ?? [];
  const fields = Object.entries({ Host: host, ...headers, 'Content-Length': String(body.byteLength) });
  const head = [`${method} ${target || '/'} HTTP/1.1`, ...fields.map(([name, value]) => `${name}: ${value}`)];
  return `${head.join('\r\n')}\r\n\r\n${new TextDecoder().decode(body)}`;
}
