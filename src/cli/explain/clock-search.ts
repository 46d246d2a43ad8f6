import type { SignatureParameters } from '../../auth/rfc9421/signature-input.ts';
import { MAX_VALIDITY_S } from '../../auth/rfc9421/window.ts';
import { MS_FROM } from '../numbers.ts';
import type { Finding } from './finding.ts';

const HALF_HOUR_S = 1_800;
/** No zone lies further from UTC. */
const WIDEST_ZONE_S = 14 * 3_600;
/** How far from a whole half hour it may be: the way, and two clocks that differ a little. */
const ZONE_SLACK_S = 120;

function zoneText(seconds: number): string {
  const minutes = Math.round(Math.abs(seconds) / 60);
  const rest = minutes % 60;
  return `${seconds > 0 ? '+' : '-'}${Math.floor(minutes / 60)}${rest === 0 ? '' : `:${rest}`} h`;
}

type Why = Omit<Finding, 'step'>;

function millisecondsOf(created: number, expires: number): Why | undefined {
  const names = Object.entries({ created, expires }).flatMap(([name, value]) =>
    value >= MS_FROM ? [name] : [],
  );
  if (names.length === 0) return undefined;
  return {
    cause: 'clock-milliseconds',
    says: `${names.join(' and ')} ${names.length > 1 ? 'are' : 'is'} in milliseconds.`,
    fix: 'The seller has to write created and expires in Unix seconds (RFC 9421 §2.3).',
    proved: true,
  };
}

function validityOf(seconds: number): Why | undefined {
  if (seconds > 0 && seconds <= MAX_VALIDITY_S) return undefined;
  return {
    cause: 'validity-too-long',
    says: `expires is ${seconds} s after created, and at least 1 and at most ${MAX_VALIDITY_S} are allowed.`,
    fix: `The seller has to set expires to created + ${MAX_VALIDITY_S} or less.`,
    proved: true,
  };
}

/** What the receiver itself says of its clock: verification.md §2.35. */
const OWN_CLOCK =
  "Where it is the receiver's clock, it answers 503 clock_skew with an alarm once its store's clock or three operators show it; one seller alone gets 401.";

/** @param off seconds by which `created` is ahead of the receipt. */
function skewOf(off: number): Why {
  const zone = Math.round(off / HALF_HOUR_S) * HALF_HOUR_S;
  const far = `created is ${Math.abs(off)} s ${off > 0 ? 'ahead of' : 'behind'} the moment of receipt`;
  if (zone !== 0 && Math.abs(zone) <= WIDEST_ZONE_S && Math.abs(off - zone) <= ZONE_SLACK_S) {
    return {
      cause: 'clock-zone',
      says: `${far}: as of a clock in a zone of ${zoneText(zone)} whose time is taken for UTC.`,
      fix: `The seller, or your machine, has to make Unix seconds from UTC, not from local time. ${OWN_CLOCK}`,
      proved: false,
    };
  }
  return {
    cause: 'clock-off',
    says: `${far}.`,
    fix: `Check both clocks (NTP), and that deliveries do not wait in a queue after they are signed: every attempt has to be signed anew. ${OWN_CLOCK}`,
    proved: false,
  };
}

/**
 * Why check 5 failed.
 * @param receivedAt Unix ms, by a clock that is right.
 */
export function searchClock(parameters: SignatureParameters, receivedAt: number, step: string): Finding {
  const { created = 0, expires = 0 } = parameters;
  const off = created - Math.round(receivedAt / 1000);
  return { step, ...(millisecondsOf(created, expires) ?? validityOf(expires - created) ?? skewOf(off)) };
}
