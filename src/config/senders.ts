// Combines the senders of the option `senders` with those of registrations (admission.md §2.10, §2.11). The
// configuration calls this.
import { isThenable } from '../shared/realms.ts';
import { ConfigError } from '../shared/errors.ts';
import { type Bases, basesOf, type PublicUrl } from './public-url.ts';
import type { ReceiverOptions, SenderSource, SendersByPath } from './receiver-options.ts';
import { type ResolveSenders, type SenderDefaults, senderSource } from './sender-source.ts';
import { APART, sendersByPath } from './senders-by-path.ts';

/**
 * Makes the look-up of senders by URL. Below the `baseUrl` of registrations it finds the senders of the registrations,
 * elsewhere those of the option `senders`.
 * @throws ConfigError with the fix.
 */
export function sendersIn(
  { senders, registrations }: Pick<ReceiverOptions, 'senders' | 'registrations'>,
  bases: Bases,
  defaults: SenderDefaults,
): ResolveSenders {
  const theirs = registrations?.senders;
  if (senders === undefined || senders === theirs) return senderSource(theirs, defaults);
  const below = prefixesOf(registrations?.publicUrl, defaults);
  const common = below.find((prefix) => bases.some((base) => meet(base, prefix)));
  if (theirs === undefined || common === undefined) return ownSenders(senders, bases, defaults);
  if (isList(senders)) {
    throw new ConfigError(
      `senders: is one list for every path under publicUrl, but those below ${common} belong to registrations. Write senders by path: senders: { '/…': [ … ] }.`,
    );
  }
  return together(senderSource(theirs, defaults), ownSenders(senders, bases, defaults, below), below);
}

const isList = (
  senders: SenderSource,
): senders is Exclude<SenderSource, SendersByPath> & readonly unknown[] => Array.isArray(senders);

function ownSenders(
  senders: SenderSource,
  bases: Bases,
  defaults: SenderDefaults,
  taken: readonly string[] = [],
): ResolveSenders {
  return isByPath(senders) ? sendersByPath(senders, bases, defaults, taken) : senderSource(senders, defaults);
}

/** True if `senders` is an object with a list for each path: a plain object, not a Map, a promise or the like. */
function isByPath(senders: SenderSource): senders is SendersByPath {
  if (typeof senders !== 'object' || senders === null || Array.isArray(senders)) return false;
  if (isThenable(senders)) return false;
  const prototype: unknown = Object.getPrototypeOf(senders);
  return prototype === null || Object.getPrototypeOf(prototype) === null;
}

/** Returns the URL prefixes of registrations. All paths below such a prefix belong to registrations. */
function prefixesOf(
  publicUrl: string | readonly string[] | undefined,
  { allowLoopback }: SenderDefaults,
): readonly string[] {
  if (publicUrl === undefined) return [];
  return basesOf(publicUrl, allowLoopback).flatMap((url) => (url.kind === 'prefix' ? url.prefix : []));
}

/** True if some URL can be below both prefixes. */
const meet = (publicUrl: PublicUrl, below: string): boolean =>
  publicUrl.kind === 'prefix' && (below.startsWith(publicUrl.prefix) || publicUrl.prefix.startsWith(below));

/**
 * Combines two look-ups: the senders of registrations below each prefix of `below`, and the owner's senders elsewhere.
 * The result rejects if, below such a prefix, only the owner's function finds a sender.
 */
function together(theirs: ResolveSenders, own: ResolveSenders, below: readonly string[]): ResolveSenders {
  return {
    async forUrl(targetUri) {
      const above = below.find((prefix) => targetUri.startsWith(prefix));
      if (above === undefined) return own.forUrl(targetUri);
      const found = await theirs.forUrl(targetUri);
      if (found.length > 0 || (await own.forUrl(targetUri)).length === 0) return found;
      throw new ConfigError(
        `senders: returns a sender for a URL below ${above}, the baseUrl of registrations, whose paths belong to them alone. ${APART}`,
      );
    },
  };
}
