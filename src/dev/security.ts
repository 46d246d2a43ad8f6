// Refuses requests from web pages of other origins, and from callers without the token (dev.md §4.1). dev.ts calls it
// before anything else.
import type { IncomingMessage } from 'node:http';
import { equalBytes } from '../crypto/equal.ts';
import { createHashes } from '../crypto/hashes.ts';
import { ApiError } from './api-error.ts';

/**
 * The host names by which a request may address this machine. Any other name may belong to a web page that has rebound
 * its DNS name to this machine (dev.md §4.1).
 */
const HOSTS: readonly string[] = ['127.0.0.1', 'localhost', '[::1]'];

/** Returns the values of all lines of a header. Node's own `headers` drops all but the first line of some headers. */
function linesOf({ rawHeaders }: IncomingMessage, name: string): string[] {
  return rawHeaders.filter((_, index) => index % 2 === 1 && rawHeaders[index - 1]?.toLowerCase() === name);
}

/** The checks that a request has to pass. */
export interface Guard {
  /**
   * Requires a `Host` that names this machine. If there is an `Origin`, it must be that of dev's page. @throws ApiError
   * `forbidden_host`, `forbidden_origin`.
   */
  readonly requireLocal: (request: IncomingMessage) => void;
  /** Requires the token of dev's API. @throws ApiError `unauthorized`. */
  readonly requireToken: (request: IncomingMessage) => void;
}

/** Makes the checks for requests to a dev that listens at `port`. The API requires `token`. */
export function createGuard(port: number, token: string): Guard {
  // Clients omit port 80 from `Host`, because it is the default of http.
  const hosts = new Set(HOSTS.flatMap((host) => (port === 80 ? [host, `${host}:80`] : [`${host}:${port}`])));
  const origins = new Set([...hosts].map((host) => `http://${host}`));
  const hash = (text: string): Uint8Array => createHashes().sha256(new TextEncoder().encode(text));
  const expected = hash(token);
  return {
    requireLocal(request) {
      const [host, ...others] = linesOf(request, 'host');
      if (host === undefined || others.length > 0 || !hosts.has(host.toLowerCase())) {
        throw new ApiError('forbidden_host', `Host is not that of dev. Expected http://127.0.0.1:${port}.`);
      }
      for (const origin of linesOf(request, 'origin')) {
        if (!origins.has(origin.toLowerCase())) {
          throw new ApiError('forbidden_origin', 'Origin is not that of dev: it answers its own page alone.');
        }
      }
    },
    requireToken(request) {
      const [line = '', ...others] = linesOf(request, 'authorization');
      const given = /^Bearer ([\x21-\x7e]+)$/i.exec(line)?.[1] ?? '';
      // Hashes are compared, so that the duration reveals neither the length nor the first wrong character of the
      // token.
      if (others.length > 0 || !equalBytes(hash(given), expected)) {
        throw new ApiError(
          'unauthorized',
          'No token, or a wrong one. Expected Authorization: Bearer with the token that the terminal prints behind # (.proto-webhooks/token).',
        );
      }
    },
  };
}
