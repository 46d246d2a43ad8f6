import { expect, it } from 'vitest';
import { CALLER_OPTIONS, callerOf } from '../../src/registrations/caller.ts';
import { listening } from '../adapters/raw-client.ts';

it('a date in Retry-After is seen from the clock that was given', async () => {
  const date = 'Sun, 01 Mar 2026 12:00:30 GMT';
  await using server = await listening((_req, res) => res.writeHead(503, { 'retry-after': date }).end());
  const now = (): number => Date.parse('2026-03-01T12:00:00Z');
  const { fetchFor } = callerOf('test', { allowLoopback: true }, CALLER_OPTIONS, now);
  const sellerFetch = await fetchFor(server.url);
  await expect(sellerFetch(server.url)).rejects.toMatchObject({
    name: 'SellerBusyError',
    message: 'The seller answers 503: it is busy, and to be called again in 30000 ms.',
    status: 503,
    retryAfterMs: 30_000,
  });
});
