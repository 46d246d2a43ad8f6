// Lists everything that dev can send, and the expected answer to each mistake (dev.md §2). The API's state contains the
// list. requests.ts and sending.ts call the other functions.
import { STATUSES } from '../cli/send/send-verb.ts';
import { REPORT_TYPES } from '../events/schemas.ts';
import { EDITION_NAMES } from '../shared/editions.ts';
import { needsNoSignature } from '../testing/mistake-row.ts';
import { MISTAKES, WRONG_DELIVERIES } from '../testing/mistakes.ts';
import { SAMPLE_FAMILIES } from '../testing/payloads.ts';
import type { Scenario } from './contract.ts';
import { SCHEMES } from './sellers.ts';
import type { DevChoices, DevScheme, Expected, MistakeChoice } from './wire.ts';

/**
 * True if a seller of the scheme can make the mistake. A seller that does not sign can make only mistakes in the body.
 */
export function canMake(mistake: string, scheme: DevScheme): boolean {
  const row = WRONG_DELIVERIES[mistake];
  return row !== undefined && (scheme === 'signature' || needsNoSignature(row));
}

/**
 * Returns the answer that a correct receiver gives to a mistake. For an unknown key 503 is correct too: a receiver
 * fetches keys at most once in 30 s, and cannot decide until then.
 */
export function expectedFor(mistake: string): Expected | undefined {
  const known = MISTAKES[mistake];
  if (!known) return undefined;
  const { status, code } = known;
  const or = code === 'webhook_signature_key_unknown' ? { or: 503 } : {};
  return { status, ...(code !== undefined && { code }), ...or };
}

const mistakes = (): MistakeChoice[] =>
  Object.entries(MISTAKES).map(([name, { sends, status }]) => ({
    name,
    sends,
    status,
    ...expectedFor(name),
    schemes: SCHEMES.filter((scheme) => canMake(name, scheme)),
  }));

/** Returns everything that dev's page offers to send (dev.md §2). */
export function choicesOf(scenarios: Readonly<Record<string, Scenario>>): DevChoices {
  return {
    schemes: SCHEMES,
    keys: ['ed25519', 'p256'],
    transports: ['tool', 'agent'],
    statuses: STATUSES,
    reports: REPORT_TYPES,
    families: SAMPLE_FAMILIES,
    editions: EDITION_NAMES,
    mistakes: mistakes(),
    scenarios: Object.entries(scenarios).map(([name, { says, schemes }]) => ({ name, says, schemes })),
  };
}
