import { fieldValue } from '../../delivery.ts';
import { MS_FROM } from '../numbers.ts';
import { searchBody } from './body-search.ts';
import { withNote } from './budget.ts';
import type { Case } from './explain.ts';
import type { Finding } from './finding.ts';
import type { Look } from './look.ts';

/** Ways to make the legacy signature wrongly: what is hashed, given the timestamp and the body. */
const BASES: readonly (readonly [string, (timestamp: string) => string])[] = [
  ['the body alone, without "<timestamp>." in front', () => ''],
  ['the timestamp and the body without the dot between them', (timestamp) => timestamp],
];

function timeFinding(timestamp: string, receivedAt: number, step: string): Finding {
  const inMs = Number(timestamp) >= MS_FROM;
  return {
    step,
    cause: inMs ? 'clock-milliseconds' : 'clock-off',
    says: inMs
      ? 'The timestamp is in milliseconds.'
      : `The timestamp is ${Math.abs(Number(timestamp) - Math.round(receivedAt / 1000))} s away from the moment of receipt, and 300 s are allowed.`,
    fix: inMs
      ? 'The seller has to send Unix seconds.'
      : 'Check both clocks (NTP), and that deliveries do not wait in a queue after they are signed.',
    proved: inMs,
  };
}

const secretsOf = ({ request }: Case): readonly string[] =>
  request.senders.flatMap(({ auth }) => (auth.scheme === 'hmac' ? auth.secrets : []));

/** HMAC-SHA256 in lower-case hex, by each secret of the sender. */
function macs(made: Case, prefix: string, body: Uint8Array): readonly string[] {
  const encoder = new TextEncoder();
  return secretsOf(made).map((secret) =>
    Buffer.from(
      made.context.hashes.hmacSha256(encoder.encode(secret), encoder.encode(prefix), body),
    ).toString('hex'),
  );
}

/** What is wrong with the signature: how it is written, what it is made over, the body, or the secret. */
function signatureFindings(
  made: Case,
  step: string,
  timestamp: string,
  signature: string,
): readonly Finding[] {
  const { rawBody } = made.request.delivery;
  const finding = (says: string, fix: string): Finding => ({
    step,
    cause: 'headers',
    says,
    fix,
    proved: true,
  });
  const given = signature.replace(/^sha256=/i, '').toLowerCase();
  const fits = (prefix: string, body: Uint8Array): boolean => macs(made, prefix, body).includes(given);
  if (fits(`${timestamp}.`, rawBody)) {
    const says = `The signature is right and written as ${JSON.stringify(signature.slice(0, 16))}….`;
    return [finding(says, 'The seller has to write sha256= and lower-case hexadecimal digits.')];
  }
  const base = BASES.find(([, prefix]) => fits(prefix(timestamp), rawBody));
  if (base)
    return [finding(`The signature is over ${base[0]}.`, 'The seller has to sign <timestamp>.<raw body>.')];
  const { budget } = made;
  const matches = (bytes: Uint8Array): boolean =>
    budget.take(bytes.length * secretsOf(made).length) && fits(`${timestamp}.`, bytes);
  const found = searchBody(rawBody, matches, step, budget);
  return found.some(({ proved }) => proved)
    ? found
    : [{ step, ...NO_MATCH, says: withNote(NO_MATCH.says, budget) }];
}

const NO_MATCH: Omit<Finding, 'step'> = {
  cause: 'unknown',
  says: 'No usual serialisation of the body has this signature under the secret that was given.',
  fix: 'Compare the secret with the credentials of push_notification_config.authentication: white space, quotes, an older one.',
  proved: false,
};

/** The legacy HMAC: its clock, its form, what it is made over, and the body. */
export const lookAtHmac: Look = async (made, step) => {
  const { headers } = made.request.delivery;
  const { hmacSignatureHeader, hmacTimestampHeader } = made.context.protocol;
  const timestamp = fieldValue(headers, hmacTimestampHeader) ?? '';
  if (step.code === 'webhook_signature_window_invalid') {
    return [timeFinding(timestamp, made.request.arrivedAt, step.id)];
  }
  if (step.code !== 'webhook_signature_invalid') return [];
  return signatureFindings(made, step.id, timestamp, fieldValue(headers, hmacSignatureHeader) ?? '');
};
