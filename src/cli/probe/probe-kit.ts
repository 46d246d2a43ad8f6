// Defines a test case of the probe and its result. Makes the kit: the functions with which test cases sign and send
// deliveries. `probe.ts` and `probe-verb.ts` use it.
import { algorithmOfKey } from '../../crypto/algorithms.ts';
import { KEY_NAMES } from '../../testing/seller-keys.ts';
import type { EditionName } from '../../shared/editions.ts';
import { firstNamed, type Protocols, protocolsFor } from '../../shared/wire-names.ts';
import {
  type Jwk,
  type PayloadInput,
  signDelivery,
  type SignDeliveryOptions,
  type SignedDelivery,
} from '../../sender/sign.ts';
import type { WrongDelivery } from '../../testing/mistake-row.ts';
import { mistakenDelivery } from '../../testing/mistaken-delivery.ts';
import { type SamplePayloads, samplePayloads } from '../../testing/payloads.ts';
import { post, type PostResult } from '../../testing/seller-post.ts';

/** The role of a key in a probe, by its algorithm, purpose and name. */
export type KeyRole = 'ed25519' | 'p256' | 'request' | 'other' | 'revoked';

/** The functions and settings with which a test case runs. */
export interface ProbeKit {
  readonly url: string;
  /** A URL of the same receiver at another host; absent if there is none. */
  readonly otherUrl?: string;
  /** The protocol name in deliveries. */
  readonly protocol: string;
  readonly payloads: SamplePayloads;
  readonly keys: Readonly<Partial<Record<KeyRole, Jwk>>>;
  /** Signs with the kit's own key, unless `options.key` names another. */
  readonly sign: (payload: PayloadInput, options?: Partial<SignDeliveryOptions>) => Promise<SignedDelivery>;
  /** Makes a signed delivery of a completed task, with the given mistake. */
  readonly mistake: (row: WrongDelivery) => Promise<SignedDelivery>;
  readonly send: (delivery: SignedDelivery) => Promise<PostResult>;
  /**
   * Sends a delivery that must be accepted before the test case itself can begin.
   * @throws NotBegun (rejects) if it is not accepted.
   */
  readonly begin: (delivery: SignedDelivery) => Promise<void>;
  /** Unix ms. */
  readonly now: () => number;
  /** The protocol edition (version) that the receiver has configured for this sender; undefined: none. */
  readonly edition: EditionName | undefined;
  /** The receiver's option `hostCheck`. `off`: the receiver does not compare `Host` with its URL. */
  readonly hostCheck: 'strict' | 'off';
  /** The largest body that the receiver accepts, in bytes. */
  readonly maxBodyBytes: number;
  /**
   * The number of deliveries with which the receiver's cap of nonces per key is tested; it must be above that cap
   * (`maxNoncesPerKey`). Absent: the test is skipped.
   */
  readonly rate?: number;
}

/** Thrown if a test case could not begin, because the delivery that prepares it was not accepted. */
export class NotBegun extends Error {
  override readonly name = 'NotBegun';
}

export interface KitOptions extends Pick<ProbeKit, 'url' | 'protocol' | 'edition' | 'maxBodyBytes' | 'now'> {
  readonly rate?: number | undefined;
  readonly otherUrl?: string | undefined;
  /** The receiver's option `hostCheck`. Default: `strict`. */
  readonly hostCheck?: ProbeKit['hostCheck'] | undefined;
  readonly keys: readonly Jwk[];
  /** The address to connect to, if it is not that of `url`. */
  readonly to?: string | undefined;
  readonly timeoutMs: number;
}

/**
 * Assigns keys to the roles in the probe. The revoked key is found by its kid. Other keys are found by their purpose,
 * under any of the protocol's names, and by their curve.
 */
export function rolesOf(keys: readonly Jwk[], protocols: Protocols): Partial<Record<KeyRole, Jwk>> {
  const roles: Partial<Record<KeyRole, Jwk>> = {};
  for (const key of keys) {
    const purpose = firstNamed(protocols, ({ purposeMember }) => key[purposeMember]) ?? 'webhook-signing';
    const curve = KEY_NAMES[algorithmOfKey(key) ?? 'ed25519'];
    const revoked = String(key['kid']).endsWith('-revoked');
    const other = purpose === 'request-signing' ? 'request' : 'other';
    const role: KeyRole = revoked ? 'revoked' : purpose === 'webhook-signing' ? curve : other;
    roles[role] ??= key;
  }
  return roles;
}

/**
 * Makes the functions and settings with which test cases run.
 * @param first the key that signs unless a case chooses another.
 */
export function createKit(options: KitOptions, first: Jwk): ProbeKit {
  const { url, otherUrl, protocol, to, timeoutMs, now, rate, edition } = options;
  const { hostCheck = 'strict', maxBodyBytes } = options;
  const signal = new AbortController().signal;
  const send: ProbeKit['send'] = (delivery) =>
    post(delivery, { timeoutMs, signal, ...(to !== undefined && { to }) });
  const payloads = samplePayloads({ now });
  const keys = rolesOf(options.keys, protocolsFor(protocol));
  return {
    url,
    protocol,
    edition,
    hostCheck,
    maxBodyBytes,
    now,
    ...(rate !== undefined && { rate }),
    ...(otherUrl !== undefined && { otherUrl }),
    payloads,
    keys,
    mistake: (row) =>
      mistakenDelivery(
        row,
        { url, body: payloads.tool('completed'), key: first, protocol, now },
        { keys, maxBodyBytes },
      ),
    sign: (body, overrides) =>
      signDelivery({ url, body, key: first, protocol, now, allowMalformed: true, ...overrides }),
    send,
    begin: async (delivery) => {
      const { status, outcome, code } = await send(delivery);
      if (outcome === 'success') return;
      const answer = [status ?? outcome, code].filter((part) => part !== undefined).join(' ');
      throw new NotBegun(`the delivery before it was answered ${answer}`);
    },
  };
}

/** The answer that a conforming receiver gives. */
export interface Expected {
  /** The expected status; `2xx`: any status from 200 to 299. */
  readonly status: '2xx' | 400 | 401 | 405 | 409 | 413 | 415 | 429 | 503;
  /** The expected code: for 401 in `WWW-Authenticate`, for 400 and 409 in the body. */
  readonly code?: string;
  /**
   * Other statuses that pass too, each with a note for the user. A server in front of the receiver may answer first.
   */
  readonly orStatus?: Readonly<Record<number, string>>;
}

/** A test case: one or several deliveries, and the expected answer to the last one. */
export interface ProbeCase {
  /** The stable name, e.g. `replay`. */
  readonly name: string;
  /** A description of the delivery. */
  readonly sends: string;
  readonly expect: Expected | ((kit: Pick<ProbeKit, 'edition' | 'hostCheck' | 'protocol'>) => Expected);
  /** The key or option that the test case needs. Without it the case is skipped. */
  readonly needs?: KeyRole | 'rate';
  readonly run: (kit: ProbeKit) => Promise<PostResult>;
}

export const ACCEPTED: Expected = { status: '2xx' };

/** Returns the expected answer 401 with this code. */
export const refused = (code: string): Expected => ({ status: 401, code });

/** The result of one test case. */
export interface ProbeResult {
  readonly name: string;
  readonly sends: string;
  /** The expected answer, e.g. `401 webhook_signature_replayed`. */
  readonly expected: string;
  /** The actual answer, in the form of `expected`; `-` if the test case was skipped or could not begin. */
  readonly answered: string;
  /** `undecided`: the answer was 503, because the receiver may not fetch keys again yet. */
  readonly verdict: 'pass' | 'fail' | 'skipped' | 'undecided';
  /** The reason why the test case did not pass. */
  readonly why?: string;
  /** A remark about a test case that passed. */
  readonly note?: string;
}

/** Moves a timestamp by that many ms. */
export function later(timestamp: string, ms: number): string {
  return new Date(Date.parse(timestamp) + ms).toISOString();
}
