// Defines a case of the probe and its result, and makes the kit with which cases sign and send deliveries. The probe
// and the verb `vectors probe` use it.
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

/** The functions and settings with which cases are made. */
export interface ProbeKit {
  readonly url: string;
  /** A URL of the same receiver at another host; absent if there is none. */
  readonly otherUrl?: string;
  /** The protocol name in deliveries. */
  readonly protocol: string;
  readonly payloads: SamplePayloads;
  readonly keys: Readonly<Partial<Record<KeyRole, Jwk>>>;
  /** Signs with the first signing key, unless `options.key` says otherwise. */
  readonly sign: (payload: PayloadInput, options?: Partial<SignDeliveryOptions>) => Promise<SignedDelivery>;
  /** Signs a completed task that contains the mistake. */
  readonly mistake: (row: WrongDelivery) => Promise<SignedDelivery>;
  readonly send: (delivery: SignedDelivery) => Promise<PostResult>;
  /** Sends a delivery that must be accepted before the case itself can begin. @throws NotBegun */
  readonly begin: (delivery: SignedDelivery) => Promise<void>;
  /** Unix ms. */
  readonly now: () => number;
  /** The receiver's edition for this sender; undefined: none is set. */
  readonly edition: EditionName | undefined;
  /** The receiver's setting; `off`: it does not compare `Host` with its URL. */
  readonly hostCheck: 'strict' | 'off';
  /** The most bytes of a body that the receiver accepts. */
  readonly maxBodyBytes: number;
  /** The number of deliveries that exceeds the receiver's cap; absent: the cap is not probed. */
  readonly rate?: number;
}

/** Thrown if a case could not begin, because the delivery before it was not accepted. */
export class NotBegun extends Error {
  override readonly name = 'NotBegun';
}

export interface KitOptions extends Pick<ProbeKit, 'url' | 'protocol' | 'edition' | 'maxBodyBytes' | 'now'> {
  readonly rate?: number | undefined;
  readonly otherUrl?: string | undefined;
  /** Default: `strict`. */
  readonly hostCheck?: ProbeKit['hostCheck'] | undefined;
  readonly keys: readonly Jwk[];
  /** The address to connect to, if it is not that of `url`. */
  readonly to?: string | undefined;
  readonly timeoutMs: number;
}

/**
 * Sorts keys by role. The revoked key is found by its kid; others by their purpose, under any of the protocol's names,
 * and by their curve.
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

/** Makes a kit. @param first the key that signs unless a case chooses another. */
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
  /** Other statuses that pass too, each with a note, because a server in front of the receiver may answer first. */
  readonly orStatus?: Readonly<Record<number, string>>;
}

/** One or several deliveries, and the expected answer to the last one. */
export interface ProbeCase {
  /** The stable name, e.g. `replay`. */
  readonly name: string;
  /** The delivery in words. */
  readonly sends: string;
  readonly expect: Expected | ((kit: Pick<ProbeKit, 'edition' | 'hostCheck' | 'protocol'>) => Expected);
  /** The key or option that the case needs. Without it the case is skipped. */
  readonly needs?: KeyRole | 'rate';
  readonly run: (kit: ProbeKit) => Promise<PostResult>;
}

export const ACCEPTED: Expected = { status: '2xx' };

/** Returns the expected answer 401 with this code. */
export const refused = (code: string): Expected => ({ status: 401, code });

/** The result of one case. */
export interface ProbeResult {
  readonly name: string;
  readonly sends: string;
  /** The expected answer, e.g. `401 webhook_signature_replayed`. */
  readonly expected: string;
  /** The actual answer, in the same form. */
  readonly answered: string;
  /** `undecided`: the answer was 503, as a receiver may answer while it must not fetch keys again. */
  readonly verdict: 'pass' | 'fail' | 'skipped' | 'undecided';
  /** The reason why it did not pass. */
  readonly why?: string;
  /** A remark about a case that passed. */
  readonly note?: string;
}

/** Moves a timestamp by that many ms. */
export function later(timestamp: string, ms: number): string {
  return new Date(Date.parse(timestamp) + ms).toISOString();
}
