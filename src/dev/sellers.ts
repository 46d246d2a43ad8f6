// Makes dev's three sellers: their URLs, documents, keys, and the options with which a receiver accepts them (dev.md
// §1.1). dev.ts makes them at the start.
import { publicJwk } from '../cli/files.ts';
import type { Sender, SenderAuth } from '../config/sender-entry.ts';
import type { Jwk } from '../crypto/engine.ts';
import { generateKey } from '../sender/keys.ts';
import type { DevFolder, SellerJwks } from './folder.ts';
import type { DevScheme, DevSeller } from './wire.ts';

/** A seller of dev, with the secrets that only dev knows. */
export interface Seller extends DevSeller {
  /** The seller's private keys, from dev's folder. */
  readonly keys: SellerJwks;
  /** The seller's HMAC secret or bearer token (legacy authentication). Undefined if the seller signs. */
  readonly auth: SenderAuth | undefined;
  /** Returns the public keys that the seller's JWKS has now. */
  readonly published: () => readonly Jwk[];
  /**
   * Publishes an extra key in the seller's JWKS, and returns its private key. The next call replaces the extra key. It
   * is lost when dev ends.
   */
  readonly addKey: () => Promise<Jwk>;
}

/** Dev's sellers, and functions that find one (dev.md §1.1). */
export interface Sellers {
  readonly byScheme: Readonly<Record<DevScheme, Seller>>;
  readonly list: readonly Seller[];
  readonly brandJsonUrl: string;
  /** The published documents by path, each as a function that returns the current document. */
  readonly documents: ReadonlyMap<string, () => unknown>;
  /** Returns the seller whose agent URL has this path. */
  readonly at: (path: string) => Seller | undefined;
  /** Returns the seller whose JWKS has a key with this id. */
  readonly withKey: (kid: string) => Seller | undefined;
}

/** The URL that deliveries are posted to (`forward`), and the URL that they are signed for (dev.md §1.3). */
export interface Destination {
  /** The URL of the receiver. If the URL ends in `/*`, each seller posts to a path of its own below it. */
  readonly forward: string;
  readonly publicUrl: string;
}

export const SCHEMES: readonly DevScheme[] = ['signature', 'hmac', 'bearer'];

const BASE_PATH = '/proto-webhooks-dev/';
const BRAND_JSON = '/.well-known/brand.json';

/** True if the URL ends in `/*`, i.e. each seller has a path of its own below it. */
export const isPrefix = (url: string): boolean => url.endsWith('/*');

const urlOf = (url: string, scheme: DevScheme): string => (isPrefix(url) ? url.slice(0, -1) + scheme : url);

function entryText(agentUrl: string, auth: SenderAuth | undefined): string {
  if (!auth) return `{ agentUrl: '${agentUrl}' }`;
  const text =
    'hmac' in auth ? `hmac: { secret: '${auth.hmac.secret}' }` : `bearer: { token: '${auth.bearer.token}' }`;
  return `{ agentUrl: '${agentUrl}', auth: { ${text} } }`;
}

/**
 * Returns the options to paste into a receiver: this seller alone, or all sellers by path if each has a path of its
 * own. At one URL a receiver takes only one kind of authentication.
 */
function lineOf(scheme: DevScheme, entries: Readonly<Record<DevScheme, string>>, publicUrl: string): string {
  const senders = isPrefix(publicUrl)
    ? `{ ${SCHEMES.map((one) => `'${new URL(urlOf(publicUrl, one)).pathname}': [${entries[one]}]`).join(', ')} }`
    : `[${entries[scheme]}]`;
  return `senders: ${senders}, allowLoopback: true,`;
}

/** Makes the sellers of a dev at this port. @param folder has the sellers' keys and secrets. */
export function createSellers(folder: DevFolder, port: number, { forward, publicUrl }: Destination): Sellers {
  const origin = `http://127.0.0.1:${port}`;
  const auths: Readonly<Record<DevScheme, SenderAuth | undefined>> = {
    signature: undefined,
    hmac: { hmac: { secret: folder.hmacSecret } },
    bearer: { bearer: { token: folder.bearerToken } },
  };
  const agentUrl = (scheme: DevScheme): string => origin + BASE_PATH + scheme;
  const entries = Object.fromEntries(
    SCHEMES.map((scheme) => [scheme, entryText(agentUrl(scheme), auths[scheme])]),
  ) as Record<DevScheme, string>;
  const sellerOf = (scheme: DevScheme): Seller => {
    const keys = folder.keys[scheme];
    let added: Jwk | undefined;
    return {
      scheme,
      agentUrl: agentUrl(scheme),
      forward: urlOf(forward, scheme),
      publicUrl: urlOf(publicUrl, scheme),
      line: lineOf(scheme, entries, publicUrl),
      keys,
      auth: auths[scheme],
      published: () => [keys.ed25519, keys.p256, ...(added ? [added] : [])].map(publicJwk),
      addKey: async () => (added = (await generateKey('ed25519', 'webhook-signing')).privateJwk),
    };
  };
  const byScheme = { signature: sellerOf('signature'), hmac: sellerOf('hmac'), bearer: sellerOf('bearer') };
  const list = SCHEMES.map((scheme) => byScheme[scheme]);
  const jwksPath = (scheme: DevScheme): string => `${BASE_PATH}${scheme}/jwks.json`;
  const agents = list.map(({ scheme, agentUrl: url }) => ({
    type: 'sales',
    url,
    jwks_uri: origin + jwksPath(scheme),
  }));
  return {
    byScheme,
    list,
    brandJsonUrl: origin + BRAND_JSON,
    documents: new Map<string, () => unknown>([
      [BRAND_JSON, () => ({ name: 'proto-webhooks dev', agents })],
      ...list.map(({ scheme, published }) => [jwksPath(scheme), () => ({ keys: published() })] as const),
    ]),
    at: (path) => list.find(({ scheme }) => path === BASE_PATH + scheme),
    withKey: (kid) => list.find(({ published }) => published().some((jwk) => jwk['kid'] === kid)),
  };
}

/** Returns the entry of `senders` with which a receiver accepts the seller, for `explain`. */
export function senderOf({ agentUrl, auth, published }: Seller): Sender {
  return { agentUrl, pins: published(), ...(auth && { auth }) };
}

/** Returns the members of a seller that the API shows, without private keys. */
export function shownSeller({ scheme, agentUrl, forward, publicUrl, line }: Seller): DevSeller {
  return { scheme, agentUrl, forward, publicUrl, line };
}
