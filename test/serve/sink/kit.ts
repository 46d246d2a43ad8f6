import { expect } from 'vitest';
import { type Event, readEvent } from '../../../src/events/index.ts';
import type { SinkAttempt } from '../../../src/serve/sink/for-tests.ts';
import { samplePayloads } from '../../../src/testing/index.ts';
import { SILENT_LOGGER } from '../../support/silent-logger.ts';

export const payloads = samplePayloads();

export const AGENT = 'https://seller.example/mcp';

/** The event of a body, as a handler gets it. */
export function eventOf(payload: object, sender: string = AGENT): Event {
  const reading = readEvent(Buffer.from(JSON.stringify(payload)), { sender });
  return reading.ok ? reading.event : expect.fail(reading.reason);
}

/** An event with other members, whatever reads it. */
export const changed = (event: Event, members: object): Event => ({ ...event, ...members });

export const SECRET = `whsec_${Buffer.alloc(32, 1).toString('base64')}`;

/** A version 8 UUID, as delivery ids are. */
export const idOf = (n: number): string => `00000000-0000-8000-8000-${String(n).padStart(12, '0')}`;

export function attemptOf(event: Event, more: Partial<SinkAttempt> = {}): SinkAttempt {
  const signal = new AbortController().signal;
  return { event, id: idOf(1), run: 1, repeated: false, signal, log: SILENT_LOGGER, ...more };
}

/** What a promise rejects with. */
export const faultOf = (promise: Promise<unknown>): Promise<Error & { readonly code?: unknown }> =>
  promise.then(
    () => expect.fail('it resolved'),
    (error: unknown) => error as Error,
  );
