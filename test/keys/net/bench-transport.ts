import type { KeyFetch } from '../../../src/index.ts';
import { netModules, type NetModules } from '../../../src/keys/for-tests.ts';

export const HOST = 'seller.example';

export function modules(): NetModules {
  const found = netModules();
  if (found === undefined) throw new Error('this runtime has no sockets');
  return found;
}

/** One call of the transport itself, without the document's rules around it. */
export async function called(
  transport: KeyFetch,
  url = `https://${HOST}/doc`,
  signal: AbortSignal = new AbortController().signal,
): Promise<Response> {
  return await transport(url, { method: 'GET', headers: {}, redirect: 'manual', signal });
}
