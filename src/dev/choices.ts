// Lists everything that can be sent, and the answer to each mistake (dev.md §2). The API's state has the list;
// requests and sending ask for the answers.
import { STATUSES } from '../cli/send/send-verb.ts';
import { REPORT_TYPES } from '../events/schemas.ts';
import { EDITION_NAMES } from '../shared/editions.ts';
import { needsNoSignature } from '../testing/mistake-row.ts';
import { MISTAKES, WRONG_DELIVERIES } from '../testing/mistakes.ts';
import { SAMPLE_FAMILIES } from '../testing/payloads.ts';
import type { Scenario } from './contract.ts';
import { SCHEMES } from './sellers.ts';
import type { DevChoices, DevScheme, Expected, MistakeChoice } from './wire.ts';

/** True if a seller of the scheme can make the mistake: one without a signature makes those in the body alone. */
export function canMake(mistake: string, scheme: DevScheme): boolean {
  const row = WRONG_DELIVERIES[mistake];
  return row !== undefined && (scheme === 'signature' || needsNoSignature(row));
}

/**
 * The answer to a mistake. Keys are fetched again at most once in 30 s: until then a receiver cannot say that a key
 * is unknown, and answers 503.
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

/** Everything that can be sent (dev.md §2). */
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
