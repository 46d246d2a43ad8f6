import { describe, expect, it } from 'vitest';
import { checkRevocations, createDocuments, type RevocationState } from '../../../src/cli/for-tests.ts';
import { editionFor, protocolFor, protocolsFor } from '../../../src/for-tests.ts';

const ORIGIN = 'https://operator.example';
const UPDATED = Date.parse('2026-03-01T12:00:00Z');
const INTERVAL_MS = 5 * 60_000;
const NEXT = UPDATED + INTERVAL_MS;

const LIST = {
  version: 1,
  issuer: ORIGIN,
  updated: new Date(UPDATED).toISOString(),
  next_update: new Date(NEXT).toISOString(),
  revoked_kids: ['gone'],
};

const SENDER = {
  agentUrl: 'https://seller.example/mcp',
  auth: { scheme: 'signature' },
  edition: editionFor('3.1'),
  maxNoncesPerKey: 1,
} as const;

interface Found {
  readonly revocation: RevocationState;
  readonly faults: readonly string[];
}

/** What is found where configuration names the list, and its URL answers 200 with `body`. */
async function find(body: string, now: number): Promise<Found> {
  const url = `${ORIGIN}/revocations.json`;
  const sender = { ...SENDER, revocation: { url } };
  const options = {
    allowLoopback: false,
    fetch: async () => new Response(body),
    now: () => now,
  };
  const documents = createDocuments(options);
  const protocols = protocolsFor();
  const faults: string[] = [];
  const check = { options, protocols, documents, sender, listing: undefined, jwks: [], pinned: false };
  return { revocation: await checkRevocations(check, { faults, notes: [] }), faults };
}

describe('keys check: the revocation list, with the receiver’s result (verification.md §5.24 to §5.26)', () => {
  it('is fresh for four intervals after next_update', async () => {
    const { revocation, faults } = await find(JSON.stringify(LIST), NEXT + 4 * INTERVAL_MS);
    expect([revocation.state, revocation.kids, faults]).toEqual(['fresh', ['gone'], []]);
  });

  it('is stale afterwards', async () => {
    const { revocation, faults } = await find(JSON.stringify(LIST), NEXT + 4 * INTERVAL_MS + 1);
    expect([revocation.state, revocation.kids, faults]).toEqual([
      'stale',
      ['gone'],
      [expect.stringContaining('stale since its next_update')],
    ]);
  });

  it('is looked for at both paths of the operator: the state that decides, and what either revokes', async () => {
    const check = async (served: Readonly<Record<string, object>>) => {
      const options = {
        allowLoopback: false,
        fetch: async (url: string) => {
          const body = served[new URL(url).pathname];
          return body ? Response.json(body) : new Response(null, { status: 404 });
        },
        now: () => UPDATED,
      };
      const documents = createDocuments(options);
      const findings = { faults: [], notes: [] };
      const listing = `${ORIGIN}/.well-known/brand.json`;
      const asked = {
        options,
        protocols: protocolsFor('proto'),
        documents,
        sender: SENDER,
        listing,
        jwks: [],
        pinned: false,
      };
      return { revocation: await checkRevocations(asked, findings), links: documents.links, ...findings };
    };
    const [own, governance] = protocolFor().revocationsPaths;
    const general = {
      payload: Buffer.from(JSON.stringify({ ...LIST, revoked_kids: ['signed'] })).toString('base64url'),
      signatures: [
        { protected: Buffer.from('{"alg":"EdDSA","kid":"k"}').toString('base64url'), signature: 'AA' },
      ],
    };
    const plain = await check({ [governance]: LIST });
    expect([plain.revocation.state, plain.revocation.kids, plain.faults]).toEqual(['fresh', ['gone'], []]);
    expect(plain.links.map(({ url, state }) => [new URL(url).pathname, state])).toEqual([
      [own, 'absent'],
      [governance, 'good'],
    ]);
    const unknown = await check({ [own]: LIST, [governance]: general });
    expect([unknown.revocation.state, unknown.revocation.kids]).toEqual(['unknown', ['gone']]);
    expect(unknown.faults).toEqual([
      `revocation list at ${ORIGIN}${governance}: signed by a key that is not in the operator's JWKS. It is not accepted. Deliveries are answered 503.`,
    ]);
    expect((await check({})).revocation).toEqual({ state: 'none', kids: [] });
  });

  it.each([
    ['larger than 256 KiB', JSON.stringify({ ...LIST, pad: 'x'.repeat(262_144) })],
    ['empty', ''],
    ['no list', '<html></html>'],
  ])('is unknown when configuration names it and it is %s', async (_, body) => {
    const { revocation, faults } = await find(body, UPDATED);
    expect(revocation).toEqual({ state: 'unknown', kids: [], required: true });
    expect(faults).toEqual([expect.stringContaining('Deliveries are answered 503.')]);
  });
});
