import { isThenable } from '../shared/realms.ts';
import { ConfigError } from '../shared/errors.ts';
import { type PublicUrl, publicUrlOf } from './public-url.ts';
import type { ReceiverOptions, SenderSource, SendersByPath } from './receiver-options.ts';
import { type ResolveSenders, type SenderDefaults, senderSource } from './sender-source.ts';
import { APART, sendersByPath } from './senders-by-path.ts';

/**
 * Who may call which URL. Below the `baseUrl` of registrations these are theirs, and elsewhere those of the option `senders`.
 * @throws ConfigError with the fix
 */
export function sendersIn(
  { senders, registrations }: Pick<ReceiverOptions, 'senders' | 'registrations'>,
  publicUrl: PublicUrl,
  defaults: SenderDefaults,
): ResolveSenders {
  const theirs = registrations?.senders;
  if (senders === undefined || senders === theirs) return senderSource(theirs, defaults);
  const below = prefixOf(registrations?.publicUrl, defaults);
  if (theirs === undefined || below === undefined || !meet(publicUrl, below)) {
    return ownSenders(senders, publicUrl, defaults);
  }
  if (isList(senders)) {
    throw new ConfigError(
      `senders: is one list for every path under publicUrl, but those below ${below} belong to registrations. Write senders by path: senders: { '/…': [ … ] }.`,
    );
  }
  return together(senderSource(theirs, defaults), ownSenders(senders, publicUrl, defaults, below), below);
}

const isList = (
  senders: SenderSource,
): senders is Exclude<SenderSource, SendersByPath> & readonly unknown[] => Array.isArray(senders);

function ownSenders(
  senders: SenderSource,
  publicUrl: PublicUrl,
  defaults: SenderDefaults,
  taken?: string,
): ResolveSenders {
  return isByPath(senders)
    ? sendersByPath(senders, publicUrl, defaults, taken)
    : senderSource(senders, defaults);
}

/** An object as it is written in code; nothing that has methods, as a Map or a promise has. */
function isByPath(senders: SenderSource): senders is SendersByPath {
  if (typeof senders !== 'object' || senders === null || Array.isArray(senders)) return false;
  if (isThenable(senders)) return false;
  const prototype: unknown = Object.getPrototypeOf(senders);
  return prototype === null || Object.getPrototypeOf(prototype) === null;
}

function prefixOf(publicUrl: string | undefined, { allowLoopback }: SenderDefaults): string | undefined {
  if (publicUrl === undefined) return undefined;
  const url = publicUrlOf(publicUrl, allowLoopback);
  return url.kind === 'prefix' ? url.prefix : undefined;
}

/** True if a URL can be under both. */
const meet = (publicUrl: PublicUrl, below: string): boolean =>
  publicUrl.kind === 'prefix' && (below.startsWith(publicUrl.prefix) || publicUrl.prefix.startsWith(below));

/** Below `below` they are those of registrations. Rejects where these know nobody there, and the owner's function does. */
function together(theirs: ResolveSenders, own: ResolveSenders, below: string): ResolveSenders {
  return {
    async forUrl(targetUri) {
      if (!targetUri.startsWith(below)) return own.forUrl(targetUri);
      const found = await theirs.forUrl(targetUri);
      if (found.length > 0 || (await own.forUrl(targetUri)).length === 0) return found;
      throw new ConfigError(
        `senders: returns a sender for a URL below ${below}, the baseUrl of registrations, whose paths belong to them alone. ${APART}`,
      );
    },
  };
}
