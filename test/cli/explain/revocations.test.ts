import { writeFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { httpText } from '../../../src/cli/for-tests.ts';
import { generateKey } from '../../../src/sender/sign.ts';
import { createFakeSeller, type FakeSeller } from '../../../src/testing/index.ts';
import { tempFolder } from '../temp-folder.ts';
import { URL_GIVEN } from './captures.ts';
import { explainHere } from './run-here.ts';

const PATH = '/.well-known/proto-revocations.json';
const HOUR_MS = 3_600_000;

/** Members of a list whose `next_update` was an hour ago, and its interval a minute. */
const STALE_MEMBERS = {
  updated: new Date(Date.now() - HOUR_MS - 60_000).toISOString(),
  next_update: new Date(Date.now() - HOUR_MS).toISOString(),
};

const kidOf = (seller: FakeSeller): string => String(seller.keys.ed25519.publicJwk['kid']);

interface Published {
  readonly how: string;
  readonly publish: (seller: FakeSeller) => void;
  readonly more?: (seller: FakeSeller) => readonly string[];
  readonly code: number;
  readonly row: object;
}

const STRANGER = await generateKey('ed25519', 'webhook-signing', { kid: 'stranger' });

const STALE = { verdict: 'fail', code: 'webhook_signature_revocation_stale' };

const CASES: readonly Published[] = [
  {
    how: 'none: a receiver asks for none',
    publish: () => undefined,
    code: 0,
    row: { verdict: 'pass', detail: 'there is no revocation list' },
  },
  {
    how: 'a page that is not a list: the same',
    publish: ({ faults }) => faults.set(PATH, 'html'),
    code: 0,
    row: { verdict: 'pass', detail: 'there is no revocation list' },
  },
  {
    how: 'a fresh list without the key',
    publish: (seller) => seller.revoke(['another']),
    code: 0,
    row: { verdict: 'pass' },
  },
  {
    how: 'a fresh list with the key',
    publish: (seller) => seller.revoke([kidOf(seller)]),
    code: 1,
    row: { verdict: 'fail', code: 'webhook_signature_key_revoked' },
  },
  {
    how: 'a stale list',
    publish: (seller) => seller.revoke([], { members: STALE_MEMBERS }),
    code: 1,
    row: { ...STALE, detail: expect.stringContaining('stale since its next_update') as string },
  },
  {
    how: 'a stale list with the key, which stays revoked',
    publish: (seller) => seller.revoke([kidOf(seller)], { members: STALE_MEMBERS }),
    code: 1,
    row: { verdict: 'fail', code: 'webhook_signature_key_revoked' },
  },
  {
    how: 'a list of another issuer, which no receiver takes',
    publish: (seller) => seller.revoke([], { members: { issuer: 'https://elsewhere.example' } }),
    code: 1,
    row: { ...STALE, detail: expect.stringContaining('issuer is not the origin') as string },
  },
  {
    how: 'a list signed by a key that is not published, which no receiver takes',
    publish: (seller) => seller.revoke([], { form: 'compact', key: STRANGER.privateJwk }),
    code: 1,
    row: { ...STALE, detail: expect.stringContaining('It is not accepted') as string },
  },
  {
    how: 'none where configuration names one',
    publish: () => undefined,
    more: ({ revocationsUrl }) => ['--revocations', revocationsUrl],
    code: 1,
    row: STALE,
  },
  {
    how: 'a server that fails: whether there is a list nobody knows',
    publish: ({ faults }) => faults.set(PATH, 'unavailable'),
    code: 0,
    row: { verdict: 'open', detail: expect.stringContaining('revocation list at') as string },
  },
];

describe("explain: check 9 is what a receiver makes of the operator's list", () => {
  it.each(CASES)('$how', async ({ publish, more, code, row }) => {
    await using seller = await createFakeSeller({ url: URL_GIVEN });
    publish(seller);
    const capture = httpText(await seller.sign(seller.payloads.tool('completed')));
    const args = ['-', '--agent-url', seller.agentUrl, '--allow-loopback', '--url', URL_GIVEN];
    const ended = await explainHere([...args, ...(more?.(seller) ?? [])], capture);
    if (ended.code === 2) throw new Error(ended.message);
    const step = ended.explanation.steps.find(({ id }) => id === '9');
    expect({ code: ended.code, step }).toMatchObject({ code, step: row });
    const explained = ended.explanation.findings.map((finding) => finding.step);
    expect(explained).toEqual(code === 0 ? [] : ['9']);
    expect(ended.text.includes('A receiver would accept')).toBe(code === 0);
  });

  it('fails at check 7 when a publisher’s file, which may pin other keys, cannot be fetched', async () => {
    await using seller = await createFakeSeller({ url: URL_GIVEN });
    seller.faults.set('/.well-known/adagents.json', 'unavailable');
    const capture = httpText(await seller.sign(seller.payloads.tool('completed')));
    const args = ['-', '--agent-url', seller.agentUrl, '--allow-loopback', '--url', URL_GIVEN];
    const publisher = ['--publisher', new URL(seller.agentUrl).host];
    const ended = await explainHere([...args, ...publisher], capture);
    expect(ended).toMatchObject({
      code: 1,
      explanation: { findings: [{ step: '7', cause: 'key-missing' }] },
    });
  });

  it('is open with --keys alone, and the verdict says so', async () => {
    await using seller = await createFakeSeller({ url: URL_GIVEN });
    using folder = tempFolder();
    writeFileSync(folder.file('jwks.json'), JSON.stringify({ keys: [seller.keys.ed25519.publicJwk] }));
    const capture = httpText(await seller.sign(seller.payloads.tool('completed')));
    const ended = await explainHere(['-', '--keys', folder.file('jwks.json'), '--url', URL_GIVEN], capture);
    if (ended.code === 2) throw new Error(ended.message);
    expect(ended.code).toBe(0);
    expect(ended.explanation.steps.find(({ id }) => id === '9')).toMatchObject({ verdict: 'open' });
    expect(ended.text).toContain(
      'A receiver would accept this delivery, unless it has received it before, and its key is not revoked.',
    );
  });
});
