import { describe, expect, test } from 'vitest';
import { BRAND, JWKS, MINUTE, rehearse, REVOCATIONS } from '../testing/rehearsal.ts';

const ACCEPTED = 'accepted 200';

describe("what a receiver's onAlarm is told about keys", () => {
  test('jwks_uri_moved: the first and the new URL, once for each new one', async () => {
    const { seller, deliver, advance, alarmsOf } = await rehearse();
    expect(await deliver()).toBe(ACCEPTED);
    const jwksUri = `${seller.jwksUrl}?moved`;
    seller.documents.set(BRAND, { agents: [{ url: seller.agentUrl, jwks_uri: jwksUri }] });
    advance(6 * MINUTE);
    expect([await deliver(), await deliver()]).toEqual([ACCEPTED, ACCEPTED]);
    expect(alarmsOf('jwks_uri_moved')).toMatchObject([
      { sender: seller.agentUrl, first: seller.jwksUrl, jwksUri },
    ]);
  });

  test('key_document_invalid: which document, at which URL, and why, without quoting it', async () => {
    const { seller, deliver, advance, alarmsOf } = await rehearse();
    expect(await deliver()).toBe(ACCEPTED);
    seller.faults.set(JWKS, 'html');
    advance(6 * MINUTE);
    expect(await deliver()).toBe(ACCEPTED);
    const [alarm] = alarmsOf('key_document_invalid');
    expect(alarm).toMatchObject({ url: seller.jwksUrl, document: 'JWKS', failures: 1 });
    expect(JSON.stringify(alarm)).not.toContain('doctype');
  });

  test('key_fetch_failing: how often, and since when', async () => {
    const { seller, deliver, advance, alarmsOf, now } = await rehearse();
    expect(await deliver()).toBe(ACCEPTED);
    seller.faults.set('*', 'down');
    advance(6 * MINUTE);
    const since = now();
    expect(await deliver()).toBe(ACCEPTED);
    advance(MINUTE);
    expect(await deliver()).toBe(ACCEPTED);
    const jwks = alarmsOf('key_fetch_failing').filter(({ url }) => url === seller.jwksUrl);
    expect(jwks).toMatchObject([
      { failures: 1, failingSince: since, document: 'JWKS' },
      { failures: 2, failingSince: since },
    ]);
  });

  test('revocation_stale: whose deliveries get 503, and why', async () => {
    const { seller, deliver, advance, alarmsOf } = await rehearse();
    seller.revoke([]);
    expect(await deliver()).toBe(ACCEPTED);
    seller.faults.set(REVOCATIONS, 'unavailable');
    advance(26 * MINUTE);
    expect(await deliver()).toBe('unavailable webhook_signature_revocation_stale 503');
    expect(alarmsOf('revocation_stale')).toMatchObject([
      {
        sender: seller.agentUrl,
        url: seller.revocationsUrl,
        message: expect.stringContaining('past next_update'),
      },
    ]);
  });

  test('agent_not_listed: near misses are named', async () => {
    const { seller, deliver, alarmsOf } = await rehearse();
    seller.documents.set(BRAND, { agents: [{ url: `${seller.agentUrl}/` }] });
    expect(await deliver()).toBe('unavailable keys_unavailable 503');
    expect(alarmsOf('agent_not_listed')[0]).toMatchObject({ nearMisses: [`${seller.agentUrl}/`] });
  });

  test('admission_pressure: which threshold tripped; nothing is refused', async () => {
    const { seller, deliver, advance, alarmsOf } = await rehearse({
      advanced: { admissionPressure: { ceiling: { absolute: 1, proportional: 0 }, longRatio: 1 } },
    });
    expect(await deliver()).toBe(ACCEPTED);
    advance(6 * MINUTE);
    for (let rotation = 1; rotation <= 2; rotation += 1) {
      await seller.rotate('ed25519', { overlap: true });
      advance(MINUTE);
      expect(await deliver()).toBe(ACCEPTED);
    }
    expect(alarmsOf('admission_pressure')).toMatchObject([
      { tripped: ['ceiling'], count: 2, sender: seller.agentUrl },
    ]);
  });

  test('a hook that throws changes no answer', async () => {
    const { seller, deliver } = await rehearse({
      onAlarm: () => {
        throw new Error('the pager is down');
      },
    });
    seller.faults.set(REVOCATIONS, 'down');
    expect(await deliver()).toBe(ACCEPTED);
  });
});
