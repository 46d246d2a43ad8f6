import { requestBytes, sign, type Signing } from './deliveries.ts';
import { closeAll, openConnections, sendAll, type Connection } from './load.ts';
import type { Contestant } from './measure.ts';
import type { KeyPair } from '../../dist/sender.js';
import type { ServerProcess } from './servers.ts';

/** A server and the name under which it is measured. */
export interface Server {
  readonly name: string;
  readonly process: Pick<ServerProcess, 'port'>;
}

let events = 0;

/** Deliveries of 1 KB that nobody has had. */
export async function freshRequests(
  count: number,
  key: KeyPair,
  signing: Signing = {},
): Promise<readonly Uint8Array[]> {
  const fresh: Uint8Array[] = [];
  for (let at = 0; at < count; at += 1) fresh.push(requestBytes(await sign(events++, key, 1024, signing)));
  return fresh;
}

/** Every server gets the same requests in one round; fresh ones in the next, for those would be replays. */
export function requestContestants(
  servers: readonly Server[],
  key: KeyPair,
  width: number,
  signing: Signing = {},
): Contestant[] {
  let requests: readonly Uint8Array[] = [];
  let served = 0;
  return servers.map(({ name, process: { port } }) => {
    let connections: readonly Connection[] = [];
    return {
      name,
      setUp: async (count: number) => {
        if (served % servers.length === 0) {
          requests = await freshRequests(count, key, signing);
        }
        served += 1;
        // Servers close connections that are idle while others are measured.
        connections = await openConnections(port, width);
      },
      run: () => sendAll(connections, requests, 200),
      tearDown: () => closeAll(connections),
    };
  });
}
