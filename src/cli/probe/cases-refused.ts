// Test cases of the probe with wrong deliveries, made from the table of mistakes in `testing/mistakes.ts`. `probe.ts`
// sends them in the order of the receiver's checks.
import { toldCode, type WrongDelivery } from '../../testing/mistake-row.ts';
import { mistakesFor } from '../../testing/mistakes.ts';
import type { Expected, ProbeCase, ProbeKit } from './probe-kit.ts';

/**
 * Further statuses that pass for a wrong method: a framework with a route only for POST answers before the receiver
 * does.
 */
const NO_ROUTE = {
  404: 'the route takes only POST; a route for every method (app.all) lets the receiver answer 405 with Allow: POST',
};

/** Further statuses that pass for a wrong host: a server for several hosts may refuse an unknown host itself. */
const NO_HOST = Object.fromEntries(
  [400, 403, 404, 421].map((status) => [status, 'refused before it reached the receiver']),
);

const NOTED: Readonly<Record<string, Expected['orStatus']>> = {
  'method-put': NO_ROUTE,
  'host-differs': NO_HOST,
};

/**
 * Returns the expected error code of a wrong delivery. If the receiver does not check `Host`, the signature fails
 * instead, because the receiver uses only its configured URL (verification.md §4.12).
 */
const codeAt = (row: WrongDelivery, hostCheck: ProbeKit['hostCheck']): string | undefined =>
  row.part === 'host' && hostCheck === 'off' ? 'webhook_signature_invalid' : toldCode(row);

function asCase([name, row]: readonly [string, WrongDelivery]): ProbeCase {
  const orStatus = NOTED[name];
  return {
    name,
    sends: row.sends.replace(/\.$/, ''),
    expect: ({ hostCheck }) => {
      const code = codeAt(row, hostCheck);
      return { status: row.status, ...(code !== undefined && { code }), ...(orStatus && { orStatus }) };
    },
    ...(row.key && { needs: row.key }),
    run: async (kit) => kit.send(await kit.mistake(row)),
  };
}

/**
 * The test case for a receiver with several hosts: a delivery that is signed for one host is accepted at no other
 * (verification.md §4.16).
 */
export const OTHER_URL_CASE: ProbeCase = {
  name: 'other-url',
  sends: 'a good delivery, sent to another URL of the receiver',
  expect: {
    status: 503,
    orStatus: { 401: 'final for the seller, should a proxy of yours make its Host that of another URL' },
  },
  run: async (kit) => {
    const signed = await kit.sign(kit.payloads.tool('completed'));
    return kit.send({ ...signed, url: kit.otherUrl ?? kit.url });
  },
};

/** The test cases from the table of wrong deliveries, in the order of the receiver's checks. */
export const REFUSED_CASES: readonly ProbeCase[] = mistakesFor('probe').map(asCase);
