import { connect } from 'node:net';
import type { Dial, Resolve } from '../../src/keys/for-tests.ts';

/** A public address that no test ever leaves the machine for. */
export const PUBLIC = '93.184.215.14';
export const OTHER_PUBLIC = '8.8.8.8';
export const PUBLIC_V6 = '2606:2800:21f:cb07:6820:80da:af6b:8b2c';

/** The internet as one test sees it: public names and addresses, each address at home on a port of loopback. */
export interface TestNetwork {
  readonly resolve: Resolve;
  readonly dial: Dial;
  /** Names that were resolved, in order. */
  readonly resolved: readonly string[];
  /** Addresses that were dialled, in order. */
  readonly dialled: readonly string[];
}

/**
 * @param names the addresses of each host name.
 * @param homes the loopback port where an address lives, or one port for all of them. Judgement stays in force: what is
 * dialled is the address, and the peer that is reported is the one which lives there.
 */
export function createTestNetwork(
  names: Readonly<Record<string, readonly string[]>>,
  homes: number | Readonly<Record<string, number>>,
): TestNetwork {
  const resolved: string[] = [];
  const dialled: string[] = [];
  return {
    resolved,
    dialled,
    resolve: async (host) => {
      resolved.push(host);
      const addresses = names[host];
      if (addresses === undefined) throw new Error(`getaddrinfo ENOTFOUND ${host}`);
      return addresses;
    },
    dial: (address) => {
      dialled.push(address);
      const port = typeof homes === 'number' ? homes : homes[address];
      if (port === undefined) throw new Error(`connect ECONNREFUSED ${address}`);
      const socket = connect(port, '127.0.0.1');
      return {
        socket,
        peerAddress: () => (socket.remoteAddress === '127.0.0.1' ? address : socket.remoteAddress),
      };
    },
  };
}
