import type { RequestListener } from 'node:http';
import type { Socket } from 'node:net';
import type { KeyFetch } from '../../../src/index.ts';
import {
  fetchDocument,
  type Fetched,
  nodeFetch,
  type NodeFetchOptions,
} from '../../../src/keys/for-tests.ts';
import { createTestNetwork, PUBLIC, type TestNetwork } from '../../support/network.ts';
import { called, HOST, modules } from './bench-transport.ts';
import {
  createTestCa,
  type LoopbackServer,
  startHttpsServer,
  startTlsServer,
  type TestCa,
} from '../../support/tls.ts';

export { called, HOST, modules };

export const CAP = 1000;

/** A seller at a public name and address, and the transport as it runs by default but for where that address lives. */
export interface Bench {
  readonly ca: TestCa;
  readonly server: LoopbackServer;
  readonly network: TestNetwork;
  readonly transport: KeyFetch;
}

export function transportIn(network: TestNetwork, ca: TestCa, options: NodeFetchOptions = {}): KeyFetch {
  const { resolve, dial } = network;
  return nodeFetch(modules(), { resolve, dial, ca: ca.pem, ...options });
}

export async function httpsBench(listener: RequestListener): Promise<Bench> {
  const ca = await createTestCa();
  return benchOf(ca, await startHttpsServer(await ca.issue([HOST]), listener));
}

/** The bytes behind the handshake are the test's: what no HTTP server would send. */
export async function rawBench(onRequest: (socket: Socket, head: string) => void): Promise<Bench> {
  const ca = await createTestCa();
  const server = await startTlsServer(await ca.issue([HOST]), (socket) => {
    socket.once('data', (bytes) => {
      onRequest(socket, bytes.toString('latin1'));
    });
  });
  return benchOf(ca, server);
}

function benchOf(ca: TestCa, server: LoopbackServer): Bench {
  const network = createTestNetwork({ [HOST]: [PUBLIC] }, server.port);
  return { ca, server, network, transport: transportIn(network, ca) };
}

export async function fetched(
  transport: KeyFetch,
  url = `https://${HOST}/doc`,
  deadlineMs = 5000,
): Promise<Fetched> {
  const rules = { fetch: transport, allowLoopback: false, deadlineMs };
  return await fetchDocument(rules, { url, maxBytes: CAP }, new AbortController());
}

export function textOf(result: Fetched): string {
  if (!result.ok) throw new Error(result.reason);
  return new TextDecoder().decode(result.bytes);
}
