import { expect, it, onTestFinished, vi } from 'vitest';
import { createEngine } from '../../src/auth/rfc9421/index.ts';
import { type AuthPolicy, editionFor, protocolsFor, type SenderEntry } from '../../src/for-tests.ts';
import { keysOnDemand } from '../../src/keys/for-tests.ts';
import { SILENT_LOGGER } from '../support/silent-logger.ts';

const sender = (auth: AuthPolicy): SenderEntry => ({
  agentUrl: 'https://seller.example/mcp',
  auth,
  edition: editionFor(),
  maxNoncesPerKey: 10,
});

/** Keys whose transport notes what it is asked for. */
function bench() {
  const asked: string[] = [];
  const options = {
    protocols: protocolsFor(),
    engine: () => createEngine(),
    fetch: (url: string) => {
      asked.push(url);
      return Promise.resolve(new Response('{"agents":[]}'));
    },
    now: Date.now,
    allowLoopback: false,
    raiseAlarm: () => {},
    logger: SILENT_LOGGER,
    thresholds: {},
  };
  return { keys: keysOnDemand(options), asked };
}

it.each([undefined, { userAgent: 'Cloudflare-Workers' }])(
  'warm() fetches for senders that sign, navigator: %o',
  async (navigator) => {
    vi.stubGlobal('navigator', navigator);
    onTestFinished(() => void vi.unstubAllGlobals());
    const { keys, asked } = bench();
    await keys.warm([sender({ scheme: 'signature' })]);
    await expect.poll(() => asked).toContain('https://seller.example/.well-known/brand.json');
    keys.stop();
  },
);

it('warm() fetches nothing for legacy senders', async () => {
  const { keys, asked } = bench();
  await keys.warm([sender({ scheme: 'bearer', tokens: ['t-'.repeat(16)] })]);
  expect(asked).toEqual([]);
});

it('stop() before it was loaded: no fetch afterwards', async () => {
  const { keys, asked } = bench();
  keys.stop();
  const search = await keys.find('k', { senders: [sender({ scheme: 'signature' })], arrivedAt: Date.now() });
  expect([search.candidates, asked]).toEqual([[], []]);
  expect(search.undecided.join()).toContain('stopped');
});
