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

/** The part that a key plays in a probe, by its algorithm, purpose and name. */
export type KeyRole = 'ed25519' | 'p256' | 'request' | 'other' | 'revoked';

/** What cases are made with. */
export interface ProbeKit {
  readonly url: string;
  /** A URL of the receiver at another host; absent: there is none. */
  readonly otherUrl?: string;
  /** The name that deliveries have. */
  readonly protocol: string;
  readonly payloads: SamplePayloads;
  readonly keys: Readonly<Partial<Record<KeyRole, Jwk>>>;
  /** Signs with the first signing key, unless `options.key` says otherwise. */
  readonly sign: (payload: PayloadInput, options?: Partial<SignDeliveryOptions>) => Promise<SignedDelivery>;
  /** Signs a completed task with the mistake in it. */
  readonly mistake: (row: WrongDelivery) => Promise<SignedDelivery>;
  readonly send: (delivery: SignedDelivery) => Promise<PostResult>;
  /** Sends what has to be accepted before the case itself can begin. @throws NotBegun */
  readonly begin: (delivery: SignedDelivery) => Promise<void>;
  /** Unix ms. */
  readonly now: () => number;
  /** What the receiver has for this sender; undefined: none is set. */
  readonly edition: EditionName | undefined;
  /** Of the receiver: `off` where it does not compare `Host` with its URL. */
  readonly hostCheck: 'strict' | 'off';
  /** Of the receiver. */
  readonly maxBodyBytes: number;
  /** How many deliveries the receiver's cap is below; absent: it is not probed. */
  readonly rate?: number;
}

/** A case could not begin: what it builds on was not accepted. */
export class NotBegun extends Error {
  override readonly name = 'NotBegun';
}

export interface KitOptions extends Pick<ProbeKit, 'url' | 'protocol' | 'edition' | 'maxBodyBytes' | 'now'> {
  readonly rate?: number | undefined;
  readonly otherUrl?: string | undefined;
  /** `strict` where absent. */
  readonly hostCheck?: ProbeKit['hostCheck'] | undefined;
  readonly keys: readonly Jwk[];
  /** Where to connect, if not where `url` says. */
  readonly to?: string | undefined;
  readonly timeoutMs: number;
}

/** Sorts keys into their roles: by the kid for the revoked one, by the purpose under any of the names, by the curve. */
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

/** @param first the key that signs where a case does not care. */
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
  /** `2xx`: any. */
  readonly status: '2xx' | 400 | 401 | 405 | 409 | 413 | 415 | 429 | 503;
  /** Of `WWW-Authenticate` for 401, of the body for 400 and 409. */
  readonly code?: string;
  /** Other statuses that pass, each with a note: something in front of the receiver may answer first. */
  readonly orStatus?: Readonly<Record<number, string>>;
}

/** One thing that is sent, or a few, and what the last of them has to be answered. */
export interface ProbeCase {
  /** Stable, e.g. `replay`. */
  readonly name: string;
  /** What is sent, in words. */
  readonly sends: string;
  readonly expect: Expected | ((kit: Pick<ProbeKit, 'edition' | 'hostCheck' | 'protocol'>) => Expected);
  /** Without this key, or option, the case is left out. */
  readonly needs?: KeyRole | 'rate';
  readonly run: (kit: ProbeKit) => Promise<PostResult>;
}

export const ACCEPTED: Expected = { status: '2xx' };

/** 401 with this code. */
export const refused = (code: string): Expected => ({ status: 401, code });

/** Result of one case. */
export interface ProbeResult {
  readonly name: string;
  readonly sends: string;
  /** e.g. `401 webhook_signature_replayed`. */
  readonly expected: string;
  /** What was answered, in the same words. */
  readonly answered: string;
  /** `undecided`: answered 503 where a receiver may (its key cooldown). */
  readonly verdict: 'pass' | 'fail' | 'skipped' | 'undecided';
  /** Why it is not a pass. */
  readonly why?: string;
  /** What to know of a pass. */
  readonly note?: string;
}

/** An instant moved by so many ms. */
export function later(timestamp: string, ms: number): string {
  return new Date(Date.parse(timestamp) + ms).toISOString();
}
