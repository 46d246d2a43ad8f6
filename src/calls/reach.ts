// Decides if the host of a URL may be called, and sends requests to public addresses or to hosts that the owner names
// (calls.md §4.2). The callers of both transports make one each.
import { ConfigError } from '../shared/errors.ts';
import type { AnyFetch, NameLookUp } from '../keys/key-resolver.ts';
import { urlRefusedReason } from '../keys/net/addresses.ts';
import { netModules } from '../keys/net/connection.ts';
import { defaultFetch } from '../keys/net/document-fetch.ts';
import { isError } from '../shared/realms.ts';

/** The rules for hosts that may be called (calls.md §4.2). */
export interface Reach {
  /**
   * Judges a URL.
   * @param from the source of the URL: the URL itself if the owner gave it, else the document that names it, which
   * opens no host.
   * @returns the reason why a URL is not called, with the option that would change it; undefined if it may be called.
   */
  readonly refusedReason: (url: string, from: string) => string | undefined;
  /** Sends a request. Addresses are judged, except for hosts that the owner has named. */
  readonly transport: AnyFetch;
  /** True if bodies come as they were sent. The platform's own `fetch` decodes them. */
  readonly isRaw: () => boolean;
}

interface ReachOptions {
  readonly allowLoopback: boolean;
  readonly allowHosts: ReadonlySet<string>;
  readonly dns: NameLookUp;
}

/** This machine by name or address, which is recognised without a look-up. */
const LOOPBACK = /^(?:(?:.+\.)?localhost|127(?:\.\d{1,3}){3}|\[::1\])$/;

const hostOf = (url: string): string => new URL(url).hostname.replace(/\.$/, '');

const LOOPBACK_FIX = 'For development on this machine set allowLoopback: true in mcpCaller or a2aCaller, too';

export function reachOf({ allowLoopback, allowHosts, dns }: ReachOptions): Reach {
  const judged = defaultFetch(false, dns);
  // Uses the system's resolver: names of a VPC or a container's network may be in no DNS server.
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

/** Adds the option to an error: a host with a private address may be the owner's. */
function withAdvice(error: unknown, url: string): unknown {
  if (!isError(error) || !error.message.includes('which is not public')) return error;
  return new Error(
    `${error.message}. A host of your own network has to be named: allowHosts: ['${hostOf(url)}'].`,
    {
      cause: error,
    },
  );
}

/** Checks a list of hosts. @throws ConfigError */
export function hostsOf(name: string, given: readonly string[] | undefined): ReadonlySet<string> {
  if (given === undefined) return new Set();
  const fix = `${name}: give host names alone, e.g. ['seller.internal'].`;
  if (!Array.isArray(given)) throw new ConfigError(fix);
  return new Set(given.map((host) => hostIn(host) ?? notAHost(host, fix)));
}

/** The host as URLs write it; undefined for a text that is not just a host name, or is written differently. */
function hostIn(host: unknown): string | undefined {
  if (typeof host !== 'string' || host.includes('*') || !URL.canParse(`https://${host}`)) return undefined;
  const url = `https://${host}`;
  return new URL(url).hostname === host.toLowerCase() ? hostOf(url) : undefined;
}

function notAHost(host: unknown, fix: string): never {
  throw new ConfigError(`${fix} ${JSON.stringify(host)} is not one.`);
}
