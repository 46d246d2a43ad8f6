// Decides if a URL may be called, and sends requests only to public addresses or to hosts that the application names
// (calls.md §4.2). Used by `mcpCaller` and `a2aCaller`.
import { ConfigError } from '../shared/errors.ts';
import type { AnyFetch, NameLookUp } from '../keys/key-resolver.ts';
import { urlRefusedReason } from '../keys/net/addresses.ts';
import { netModules } from '../keys/net/connection.ts';
import { defaultFetch } from '../keys/net/document-fetch.ts';
import { isError } from '../shared/realms.ts';

/** The rules for hosts that may be called (calls.md §4.2). */
export interface Reach {
  /**
   * Checks if a URL may be called.
   * @param from the source of the URL: the URL itself if the application gave it, otherwise the URL of the document
   *   that names it. A document cannot allow a private host.
   * @returns the reason why the URL must not be called, with the option that would allow it; undefined if it may be
   *   called.
   */
  readonly refusedReason: (url: string, from: string) => string | undefined;
  /** Sends a request. The host's addresses must be public, unless the application has allowed the host. */
  readonly transport: AnyFetch;
  /** True if bodies arrive as they were sent. False if the platform's own `fetch` is used, which decodes them. */
  readonly isRaw: () => boolean;
}

interface ReachOptions {
  readonly allowLoopback: boolean;
  readonly allowHosts: ReadonlySet<string>;
  readonly dns: NameLookUp;
}

/** Matches host names and addresses of this machine, without a DNS lookup. */
const LOOPBACK = /^(?:(?:.+\.)?localhost|127(?:\.\d{1,3}){3}|\[::1\])$/;

const hostOf = (url: string): string => new URL(url).hostname.replace(/\.$/, '');

const LOOPBACK_FIX = 'For development on this machine set allowLoopback: true in mcpCaller or a2aCaller, too';

export function reachOf({ allowLoopback, allowHosts, dns }: ReachOptions): Reach {
  const judged = defaultFetch(false, dns);
  // Requests to allowed hosts use the system's resolver, because names of a VPC or of a container network may be in no
  // DNS server.
  const open = defaultFetch(true, 'system');
  const isOpen = (url: string): boolean => {
    const host = hostOf(url);
    return allowHosts.has(host) || (allowLoopback && LOOPBACK.test(host));
  };
  return {
    refusedReason: (url, from) => {
      const basic = urlRefusedReason(url, true);
      if (basic !== undefined) return basic;
      const { protocol, hostname } = new URL(url);
      if (isOpen(url) && !isOpen(from))
        return `refused: a seller on another host must not lead to a host that only allowHosts or allowLoopback permits. To allow it, name the seller's host too: allowHosts: ['${hostOf(from)}']`;
      if (isOpen(url) && (protocol === 'https:' || allowLoopback)) return undefined;
      if (protocol !== 'https:') return `not https. ${LOOPBACK_FIX}`;
      const reason = urlRefusedReason(url, false);
      if (reason === undefined) return undefined;
      const fix = LOOPBACK.test(hostOf(url))
        ? LOOPBACK_FIX
        : `A host of your own network has to be named: allowHosts: ['${hostname}']`;
      return `refused: ${reason}. ${fix}`;
    },
    transport: async (url, init) => {
      if (isOpen(url)) return open(url, init);
      try {
        return await judged(url, init);
      } catch (error) {
        throw init.signal.aborted ? error : withAdvice(error, url);
      }
    },
    isRaw: () => netModules() !== undefined,
  };
}

/** Adds advice to the error about a private address, because the host may belong to the application's own network. */
function withAdvice(error: unknown, url: string): unknown {
  if (!isError(error) || !error.message.includes('which is not public')) return error;
  return new Error(
    `${error.message}. A host of your own network has to be named: allowHosts: ['${hostOf(url)}'].`,
    {
      cause: error,
    },
  );
}

/** Checks a list of host names, and returns it as a set. @throws ConfigError */
export function hostsOf(name: string, given: readonly string[] | undefined): ReadonlySet<string> {
  if (given === undefined) return new Set();
  const fix = `${name}: give host names alone, e.g. ['seller.internal'].`;
  if (!Array.isArray(given)) throw new ConfigError(fix);
  return new Set(given.map((host) => hostIn(host) ?? notAHost(host, fix)));
}

/**
 * Returns the host as URLs spell it; undefined if the text is not a host name alone, or if URLs spell it differently.
 */
function hostIn(host: unknown): string | undefined {
  if (typeof host !== 'string' || host.includes('*') || !URL.canParse(`https://${host}`)) return undefined;
  const url = `https://${host}`;
  return new URL(url).hostname === host.toLowerCase() ? hostOf(url) : undefined;
}

function notAHost(host: unknown, fix: string): never {
  throw new ConfigError(`${fix} ${JSON.stringify(host)} is not one.`);
}
