import { ConfigError } from '../errors.ts';
import type { SenderRevocation } from '../senders.ts';
import { requireUrl } from './public-url.ts';
import { onlyKnown } from './validate.ts';

const NAMES: Readonly<Record<keyof SenderRevocation, true>> = {
  url: true,
  discover: true,
  revokedKids: true,
};

/** @throws ConfigError naming `where`: a slip here would leave a revoked key in force. */
export function checkRevocation(
  where: string,
  revocation: SenderRevocation | undefined,
  allowLoopback: boolean,
): void {
  if (revocation === undefined) return;
  if (typeof revocation !== 'object' || revocation === null) {
    throw new ConfigError(`${where}: must be an object like { revokedKids: ['…'] }.`);
  }
  onlyKnown(where, revocation, NAMES);
  const { url, discover, revokedKids } = revocation;
  if (url !== undefined) requireUrl(`${where}.url`, url, allowLoopback);
  if (discover !== undefined && typeof discover !== 'boolean') {
    throw new ConfigError(`${where}.discover: must be true or false.`);
  }
  const strings = Array.isArray(revokedKids) && revokedKids.every((kid) => typeof kid === 'string');
  if (revokedKids !== undefined && !strings) {
    throw new ConfigError(`${where}.revokedKids: must be an array of key ids.`);
  }
}
