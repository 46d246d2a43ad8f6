import { describe, expect, it } from 'vitest';
import { hintOf, type Identity, reportOf } from '../../../src/cli/for-tests.ts';
import type { ReceiverOptions } from '../../../src/index.ts';
import { generateKey } from '../../../src/sender/sign.ts';
import { bench, probed } from './bench.ts';

const PINS: Identity = { how: 'pins', config: 'senders: […]', close: async () => undefined };

const HOUR_MS = 3_600_000;

/** What is said after a probe with everything that a hint looks at. */
async function hinted(options: Partial<ReceiverOptions>, withUrl = true): Promise<readonly string[]> {
  await using setup = await bench(options, (inner, { verifyAndDispatch }) =>
    withUrl
      ? inner
      : (req, res) => {
          const chunks: Buffer[] = [];
          req.on('data', (chunk: Buffer) => chunks.push(chunk));
          req.on('end', () => {
            verifyAndDispatch(Buffer.concat(chunks), req.rawHeaders)
              .then(({ response: { status, headers } }) => res.writeHead(status, headers).end())
              .catch(() => res.destroy());
          });
        },
  );
  const results = await probed(setup.url, {}, ['unknown-key', 'tool-completed', 'agent-completed', 'report']);
  const lines = hintOf(results, { url: setup.url, identity: PINS, waitedMs: 0 });
  return lines.map((line) => line.replaceAll(setup.url, 'URL'));
}

describe('when every valid delivery gets the same refusal, the probe names the likely cause', () => {
  it('another publicUrl: 503 while the keys are known', async () => {
    const [what, ...more] = await hinted({ publicUrl: 'http://127.0.0.1:1/elsewhere' });
    expect(what).toMatch(
      /^Every good delivery was answered 503: .* so it has the keys\..*publicUrl is not exactly URL/,
    );
    expect(what).toContain('public_url_mismatch');
    expect(what).toContain('clock_skew');
    expect(more).toEqual([]);
  });

  it('another publicUrl, in a receiver that does not try other URLs: 401 webhook_signature_invalid', async () => {
    const lines = await hinted({ publicUrl: 'http://127.0.0.1:1/elsewhere', hostCheck: 'off' }, false);
    expect(lines).toEqual([
      expect.stringMatching(
        /answered 401 webhook_signature_invalid: the receiver verifies for another URL than URL/,
      ),
    ]);
  });

  it('another clock: 401 webhook_signature_window_invalid', async () => {
    const lines = await hinted({ now: () => Date.now() + HOUR_MS });
    expect(lines).toEqual([
      expect.stringMatching(/window_invalid: the clock of this machine or the receiver's/),
    ]);
  });

  it('unknown keys: what to configure', async () => {
    const { publicJwk } = await generateKey('ed25519', 'webhook-signing', { kid: 'somebody-else' });
    const unknown = await hinted({ senders: [{ agentUrl: 'https://probe.invalid/mcp', pins: [publicJwk] }] });
    expect(unknown).toEqual([
      expect.stringContaining('does not know these keys'),
      expect.stringContaining('pins'),
      PINS.config,
    ]);
  });

  it('nothing when they are accepted', async () => {
    expect(await hinted({})).toEqual([]);
  });
});

it('404 for an unsupported method passes, with a note', async () => {
  await using setup = await bench({}, (inner) => (req, res) => {
    if (req.method === 'POST') return inner(req, res);
    res.writeHead(404).end('Cannot PUT');
  });
  const results = await probed(setup.url, {}, ['method-put', 'tool-completed']);
  expect(results.map(({ name, verdict, answered, note }) => [name, verdict, answered, note])).toEqual([
    ['tool-completed', 'pass', '200', undefined],
    ['method-put', 'pass', '404', expect.stringContaining('app.all')],
  ]);
  const { ok, text } = reportOf(setup.url, results, []);
  expect(ok).toBe(true);
  expect(text((_, plain) => plain)).toMatch(/-> 404\n {6}the route takes only POST/);
  await using right = await bench();
  const [put] = await probed(right.url, {}, ['method-put']);
  expect(put).toMatchObject({ verdict: 'pass', answered: '405' });
  expect(put).not.toHaveProperty('note');
});
