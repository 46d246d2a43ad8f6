import type { IncomingMessage } from 'node:http';
import { equalBytes } from '../crypto/equal.ts';
import { createHashes } from '../crypto/hashes.ts';
import { ApiError } from './api-error.ts';

/** Names by which this machine is asked; another one that leads here is a page's that rebinds its name (dev.md §4.1). */
const HOSTS: readonly string[] = ['127.0.0.1', 'localhost', '[::1]'];

/** The values of a header's lines: Node drops all but the first of some. */
function linesOf({ rawHeaders }: IncomingMessage, name: string): string[] {
  return rawHeaders.filter((_, index) => index % 2 === 1 && rawHeaders[index - 1]?.toLowerCase() === name);
}

/** What a request has to prove. */
export interface Guard {
  /** @throws ApiError `forbidden_host`, `forbidden_origin`. */
  readonly requireLocal: (request: IncomingMessage) => void;
  /** @throws ApiError `unauthorized`. */
  readonly requireToken: (request: IncomingMessage) => void;
}

/** Checks of requests to dev at this port. */
export function createGuard(port: number, token: string): Guard {
  // http has a port of its own, which is not written.
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
      // Of hashes, so that neither length nor place of a difference is seen in the time.
      if (others.length > 0 || !equalBytes(hash(given), expected)) {
        throw new ApiError(
          'unauthorized',
          'No token, or a wrong one. Expected Authorization: Bearer with the token that the terminal prints behind # (.proto-webhooks/token).',
        );
      }
    },
  };
}
