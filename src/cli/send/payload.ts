import type { DeliveryReport, TaskStatus } from '../../events/event.ts';
import type { PayloadInput } from '../../sender/sign.ts';
import type { SampleFamily } from '../../testing/family-payloads.ts';
import { samplePayloads } from '../../testing/payloads.ts';
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
