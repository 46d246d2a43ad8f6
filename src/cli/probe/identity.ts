import { ConfigError } from '../../errors.ts';
import { protocolFor } from '../../protocol.ts';
import type { Jwk } from '../../sender/sign.ts';
import { createFakeSeller } from '../../testing/fake-seller.ts';
import { publicJwk } from '../files.ts';
import { UsageError } from '../usage-error.ts';

/** How a receiver comes to know the keys that a command signs with. */
export interface Identity {
  readonly how: 'pins' | 'agent-url' | 'fake-seller';
  /** What the receiver has to be configured with, ready to paste. */
  readonly config: string;
  /** How often the receiver asked for documents here; undefined where it asks elsewhere. */
  readonly fetches?: () => number;
  /** Whether it asked for the revocation list, where one is served here. */
  readonly askedForList?: () => boolean;
  readonly close: () => Promise<void>;
}

export interface IdentityFlags {
  readonly agentUrl?: string;
  readonly fakeSeller?: number;
  readonly protocol?: string;
}

const nothing = async (): Promise<void> => undefined;

const isRevoked = (jwk: Jwk): boolean => String(jwk['kid']).endsWith('-revoked');

function pinned(keys: readonly Jwk[]): string {
  const revokedKids = keys.filter(isRevoked).map((jwk) => jwk['kid']);
  const revocation = revokedKids.length === 0 ? '' : `, revocation: ${JSON.stringify({ revokedKids })}`;
  const pins = keys.map((jwk) => `    ${JSON.stringify(publicJwk(jwk))},`).join('\n');
  return `senders: [{ agentUrl: 'https://probe.invalid/mcp'${revocation}, pins: [\n${pins}\n  ] }],`;
}

/** A seller on loopback that publishes these keys; revoked ones are on its list. */
async function served(port: number, keys: readonly Jwk[], protocol: string | undefined): Promise<Identity> {
  protocolFor(protocol);
  const seller = await createFakeSeller({ port, ...(protocol !== undefined && { protocol }) }).catch(
    (error: unknown) => {
      if (error instanceof ConfigError) throw error;
      throw new UsageError(
        `--fake-seller: port ${port} cannot be used (${(error as NodeJS.ErrnoException).code}). Expected a free one, the one that the receiver's agentUrl names.`,
      );
    },
  );
  seller.documents.set('/.well-known/jwks.json', { keys: keys.map(publicJwk) });
  const listPath = new URL(seller.revocationsUrl).pathname;
  const revoked = keys.filter(isRevoked).map((jwk) => String(jwk['kid']));
  if (revoked.length > 0) seller.revoke(revoked);
  return {
    how: 'fake-seller',
    config: `senders: [{ agentUrl: '${seller.agentUrl}' }],\nallowLoopback: true,`,
    fetches: () => seller.fetches(),
    ...(revoked.length > 0 && { askedForList: () => seller.fetches(listPath) > 0 }),
    close: seller.close,
  };
}

/** @param keys private ones. @throws UsageError where the port of the fake seller is taken. */
export async function identityOf(flags: IdentityFlags, keys: readonly Jwk[]): Promise<Identity> {
  if (flags.fakeSeller !== undefined) return served(flags.fakeSeller, keys, flags.protocol);
  if (flags.agentUrl === undefined) return { how: 'pins', config: pinned(keys), close: nothing };
  return { how: 'agent-url', config: `senders: [{ agentUrl: '${flags.agentUrl}' }],`, close: nothing };
}
