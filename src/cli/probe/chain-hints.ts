import type { Jwk } from '../../sender/sign.ts';
import { chainOf, type ChainFlags } from '../keys/check.ts';
import type { CliContext } from '../shell.ts';
import { UsageError } from '../usage-error.ts';

/** What is wrong with the chain that the receiver has to follow, seen from here. */
export async function chainHints(
  agentUrl: string,
  flags: Pick<ChainFlags, 'protocol' | 'edition'>,
  keys: readonly Jwk[],
  context: CliContext,
): Promise<string[]> {
  const allowLoopback = agentUrl.startsWith('http:');
  const { protocol, edition } = flags;
  const named = { ...(protocol !== undefined && { protocol }), ...(edition && { edition }) };
  try {
    const { faults, jwks } = await chainOf(agentUrl, { allowLoopback, ...named }, context);
    const published = new Set(jwks.map((jwk) => jwk['kid']));
    const missing = keys.map((jwk) => String(jwk['kid'])).filter((kid) => !published.has(kid));
    if (faults.length > 0) return [...faults];
    if (missing.length > 0) return [`Its JWKS lacks ${missing.join(', ')}.`];
    return ['Seen from here its brand.json leads to these keys.'];
  } catch (error) {
    if (error instanceof UsageError) return [error.message];
    throw error;
  }
}
