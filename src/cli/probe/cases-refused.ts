import { toldCode, type WrongDelivery } from '../../testing/mistake-row.ts';
import { mistakesFor } from '../../testing/mistakes.ts';
import type { Expected, ProbeCase, ProbeKit } from './probe-kit.ts';

/** A framework whose route is for POST alone answers before the receiver does. */
const NO_ROUTE = {
  404: 'the route takes only POST; a route for every method (app.all) lets the receiver answer 405 with Allow: POST',
};

/** What serves several hosts may refuse one that it does not know by itself. */
const NO_HOST = Object.fromEntries(
  [400, 403, 404, 421].map((status) => [status, 'refused before it reached the receiver']),
);

const NOTED: Readonly<Record<string, Expected['orStatus']>> = {
  'method-put': NO_ROUTE,
  'host-differs': NO_HOST,
};

/** verification.md §4.12: with the check off the configured URL stands alone, and the signature is what fails. */
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

/** For a receiver at several hosts: what is signed for one is accepted at no other (verification.md §4.16). */
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

/** The table of wrong deliveries, in its order: that of the checks. */
export const REFUSED_CASES: readonly ProbeCase[] = mistakesFor('probe').map(asCase);
