import { mkdtemp, writeFile } from 'node:fs/promises';
import type { RequestListener, ServerResponse } from 'node:http';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { createFakeSeller, type FakeSeller } from '../../src/testing/index.ts';
import { createTestCa, startHttpsServer } from './tls.ts';

/** What a program of the documents finds where it names a host, a port or a module that is its reader's. */
export interface Places {
  /** What answers by https at these names, under a certificate that the program trusts. */
  readonly hosts?: Readonly<Record<string, RequestListener>>;
  /** Servers of this machine by the name that the program connects to. */
  readonly servers?: Readonly<Record<string, number>>;
  /** Ports of this machine by the one that the program names, to listen at or to connect to. */
  readonly ports?: Readonly<Record<number, number>>;
  /** Paths of modules by the specifier that the program imports. */
  readonly modules?: Readonly<Record<string, string>>;
  /** A module that is loaded first, for what the page says is the reader's own. */
  readonly given?: string;
}

/** A program's surroundings; nothing in the program says otherwise. */
export interface Elsewhere extends AsyncDisposable {
  readonly env: Readonly<Record<string, string>>;
}

const FIXTURE = new URL('../examples/fixtures/elsewhere.mjs', import.meta.url);

/** @param folder for the files that the environment names. */
export async function elsewhere(folder: string, places: Places): Promise<Elsewhere> {
  const { hosts = {}, servers = {}, ports = {}, modules = {}, given } = places;
  const names = Object.keys(hosts);
  const ca = await createTestCa();
  const server = await startHttpsServer(await ca.issue(['localhost', ...names]), (req, res) => {
    const respond = hosts[req.headers.host ?? ''];
    if (respond) respond(req, res);
    else res.writeHead(404).end();
  });
  const trusted = join(await mkdtemp(join(folder, 'ca-')), 'ca.pem');
  await writeFile(trusted, ca.pem);
  // Public addresses, which the key fetcher allows; no connection goes there.
  const known = [...names.map((name) => [name, server.port] as const), ...Object.entries(servers)].map(
    ([name, port], index) => [name, { address: `93.184.215.${index + 1}`, port }],
  );
  const urls = Object.entries(modules).map(([specifier, path]) => [specifier, pathToFileURL(path).href]);
  const imports = [FIXTURE.href, ...(given === undefined ? [] : [pathToFileURL(given).href])];
  return {
    env: {
      NODE_OPTIONS: imports.map((url) => `--import ${url}`).join(' '),
      NODE_EXTRA_CA_CERTS: trusted,
      ELSEWHERE: JSON.stringify({
        hosts: Object.fromEntries(known),
        ports,
        modules: Object.fromEntries(urls),
      }),
    },
    [Symbol.asyncDispose]: () => server.close(),
  };
}

/** A fake seller as programs meet it that call it `https://seller.example`. */
export interface NamedSeller extends Elsewhere {
  readonly seller: FakeSeller;
}

const NAME = 'seller.example';

/**
 * @param folder for the files that the environment names.
 * @param answers what the seller answers at paths of its own, e.g. `/mcp`.
 */
export async function namedSeller(
  folder: string,
  protocol?: string,
  { hosts, ...places }: Places = {},
  answers: Readonly<Record<string, RequestListener>> = {},
): Promise<NamedSeller> {
  const seller = await createFakeSeller({ protocol });
  const { origin } = new URL(seller.agentUrl);
  const document = async (path: string, res: ServerResponse): Promise<void> => {
    const answer = await fetch(origin + path);
    const text = (await answer.text()).replaceAll(origin, `https://${NAME}`);
    res.writeHead(answer.status, { 'content-type': 'application/json' }).end(text);
  };
  const respond: RequestListener = (req, res) => {
    const { url = '/' } = req;
    const answer = answers[url];
    if (answer) answer(req, res);
    else void document(url, res);
  };
  const around = await elsewhere(folder, { ...places, hosts: { [NAME]: respond, ...hosts } });
  return {
    seller,
    env: around.env,
    [Symbol.asyncDispose]: async () => {
      await seller.close();
      await around[Symbol.asyncDispose]();
    },
  };
}
