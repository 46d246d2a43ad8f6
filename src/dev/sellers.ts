// Makes dev's three sellers: their URLs, documents, keys, and the line of options that a receiver needs (dev.md
// §1.1). dev.ts makes them at the start.
import { publicJwk } from '../cli/files.ts';
import type { Sender, SenderAuth } from '../config/sender-entry.ts';
import type { Jwk } from '../crypto/engine.ts';
import { generateKey } from '../sender/keys.ts';
import type { DevFolder, SellerJwks } from './folder.ts';
import type { DevScheme, DevSeller } from './wire.ts';

/** One seller with what only dev knows of it. */
export interface Seller extends DevSeller {
  /** The private keys of its own. */
  readonly keys: SellerJwks;
  /** The legacy authentication. Absent: the seller signs. */
  readonly auth: SenderAuth | undefined;
  /** The keys that its JWKS has now. */
  readonly published: () => readonly Jwk[];
  /**
   * Publishes one more key beside its own, in place of the one that was added before. The key lives as long as the
   * process.
   */
  readonly addKey: () => Promise<Jwk>;
}

/** Dev's sellers (dev.md §1.1). */
export interface Sellers {
  readonly byScheme: Readonly<Record<DevScheme, Seller>>;
  readonly list: readonly Seller[];
  readonly brandJsonUrl: string;
  /** The published documents, by path. */
  readonly documents: ReadonlyMap<string, () => unknown>;
  /** The seller at a path. */
  readonly at: (path: string) => Seller | undefined;
  /** The seller that has a key of this id. */
  readonly withKey: (kid: string) => Seller | undefined;
}

/** The URL that deliveries are posted to, and the one that they are signed for (dev.md §1.3). */
export interface Destination {
  /** The URL of the receiver. It ends in `/*` if each seller has a path of its own. */
  readonly forward: string;
  readonly publicUrl: string;
}

export const SCHEMES: readonly DevScheme[] = ['signature', 'hmac', 'bearer'];

const BASE_PATH = '/proto-webhooks-dev/';
const BRAND_JSON = '/.well-known/brand.json';

/** True if each seller has a URL of its own below it. */
export const isPrefix = (url: string): boolean => url.endsWith('/*');

const urlOf = (url: string, scheme: DevScheme): string => (isPrefix(url) ? url.slice(0, -1) + scheme : url);

function entryText(agentUrl: string, auth: SenderAuth | undefined): string {
  if (!auth) return `{ agentUrl: '${agentUrl}' }`;
  const text =
    'hmac' in auth ? `hmac: { secret: '${auth.hmac.secret}' }` : `bearer: { token: '${auth.bearer.token}' }`;
  return `{ agentUrl: '${agentUrl}', auth: { ${text} } }`;
}

/**
 * The options to paste: one list, or one for each path, because a receiver takes one kind of authentication at a URL.
 */
function lineOf(scheme: DevScheme, entries: Readonly<Record<DevScheme, string>>, publicUrl: string): string {
  const senders = isPrefix(publicUrl)
    ? `{ ${SCHEMES.map((one) => `'${new URL(urlOf(publicUrl, one)).pathname}': [${entries[one]}]`).join(', ')} }`
    : `[${entries[scheme]}]`;
  return `senders: ${senders}, allowLoopback: true,`;
}

/** Makes the sellers at this port. @param folder has their keys. */
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

/** The sender that a receiver is configured with for a seller of dev's, for `explain`. */
export function senderOf({ agentUrl, auth, published }: Seller): Sender {
  return { agentUrl, pins: published(), ...(auth && { auth }) };
}

/** The members of a seller that the API shows. */
export function shownSeller({ scheme, agentUrl, forward, publicUrl, line }: Seller): DevSeller {
  return { scheme, agentUrl, forward, publicUrl, line };
}
