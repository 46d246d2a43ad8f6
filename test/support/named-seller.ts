import { writeFile } from 'node:fs/promises';
import type { ServerResponse } from 'node:http';
import { join } from 'node:path';
import { createFakeSeller, type FakeSeller } from '../../src/testing/index.ts';
import { createTestCa, startHttpsServer } from './tls.ts';

/** A fake seller as programs meet it that call it `https://seller.example`, and nothing in them says otherwise. */
export interface NamedSeller extends AsyncDisposable {
  readonly seller: FakeSeller;
  /** Environment of such a program: the name leads to this machine, and the certificate there is trusted. */
  readonly env: Readonly<Record<string, string>>;
}

const NAME = 'seller.example';
/** A public address, which the key fetcher allows; no connection goes there. */
const ADDRESS = '93.184.215.14';

/** Loaded before the program: `seller.example` and its address lead to the port on this machine. */
const redirection = (port: number): string => `
import dns from 'node:dns';
import net from 'node:net';
const { connect } = net;
const resolver = dns.promises.Resolver.prototype;
resolver.resolve4 = async (name) => {
  if (name === '${NAME}') return ['${ADDRESS}'];
  throw new Error(name + ' is not known here');
};
resolver.resolve6 = async () => [];
net.connect = (options, ...rest) => {
  if (options?.host !== '${ADDRESS}' || options.port !== 443) return connect(options, ...rest);
  const socket = connect({ ...options, host: '127.0.0.1', port: ${port} }, ...rest);
  return Object.defineProperty(socket, 'remoteAddress', { get: () => '${ADDRESS}' });
};
`;

/** @param folder for the files that the environment names. */
export async function namedSeller(folder: string, protocol?: string): Promise<NamedSeller> {
  const seller = await createFakeSeller({ protocol });
  const { origin } = new URL(seller.agentUrl);
  const ca = await createTestCa();
  const respond = async (path: string, res: ServerResponse): Promise<void> => {
    const answer = await fetch(origin + path);
    const text = (await answer.text()).replaceAll(origin, `https://${NAME}`);
    res.writeHead(answer.status, { 'content-type': 'application/json' }).end(text);
  };
  const server = await startHttpsServer(
    await ca.issue([NAME]),
    (req, res) => void respond(req.url ?? '/', res),
  );
  const [program, trusted] = [join(folder, 'names.mjs'), join(folder, 'ca.pem')];
  await writeFile(program, redirection(server.port));
  await writeFile(trusted, ca.pem);
  return {
    seller,
    env: { NODE_OPTIONS: `--import ${program}`, NODE_EXTRA_CA_CERTS: trusted },
    [Symbol.asyncDispose]: async () => {
      await seller.close();
      await server.close();
    },
  };
}
