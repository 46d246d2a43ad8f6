import type { IncomingHttpHeaders, RequestListener } from 'node:http';
import type { AddressInfo, Server } from 'node:net';
import { setup, type Setup } from './setup.ts';
import { type Check, type Checks, envelope, type Library, same } from './kit.ts';

/** A seller's side of one protocol version. */
interface Client {
  /** `200`, or status and challenge. */
  readonly post: (headers: Readonly<Record<string, string>>, body: Uint8Array) => Promise<string>;
  readonly close: () => Promise<void>;
}

/** A server on loopback whose receiver was given its URL, and a client of it. */
type Open = (makeHandler: (url: string) => Promise<RequestListener>) => Promise<Client>;

const textOf = (status: unknown, headers: IncomingHttpHeaders): string =>
  [status, /"(.*)"/.exec(headers['www-authenticate'] ?? '')?.[1]].filter(Boolean).join(' ');

async function listening(server: Server): Promise<number> {
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  return (server.address() as AddressInfo).port;
}

const closed = (server: Server): Promise<void> =>
  new Promise((resolve) => {
    server.close(() => resolve());
  });

const http1: Open = async (makeHandler) => {
  const http = await import('node:http');
  const server = http.createServer();
  const port = await listening(server);
  server.on('request', await makeHandler(`http://127.0.0.1:${port}/hook`));
  return {
    post: (headers, body) =>
      new Promise((resolve, reject) => {
        const request = http.request({ port, host: '127.0.0.1', path: '/hook', method: 'POST', headers });
        request.on('response', (response) => {
          response.resume();
          resolve(textOf(response.statusCode, response.headers));
        });
        request.on('error', reject);
        request.on('close', () => reject(new Error('no answer')));
        request.end(body);
      }),
    close: async () => {
      // The door lingers on connections of refused bodies; nothing of that keeps this process open.
      server.closeAllConnections();
      await closed(server);
    },
  };
};

const http2: Open = async (makeHandler) => {
  const { connect, createServer } = await import('node:http2');
  const server = createServer();
  const port = await listening(server);
  const url = `http://127.0.0.1:${port}/hook`;
  const listener = await makeHandler(url);
  server.on('request', listener as never);
  // MB: what this client has yet to send must not be what ends its streams.
  const session = connect(url, { maxSessionMemory: 1000 });
  return {
    post: (headers, body) =>
      new Promise((resolve, reject) => {
        const stream = session.request({ ':method': 'POST', ':path': '/hook', ...headers });
        let answer: string | undefined;
        stream.on('response', (given) => {
          answer = textOf(given[':status'], given);
        });
        stream.on('error', (error) => (answer === undefined ? reject(error) : undefined));
        stream.on('close', () => (answer === undefined ? reject(new Error('no answer')) : resolve(answer)));
        stream.resume();
        stream.end(body);
      }),
    close: async () => {
      session.destroy();
      await closed(server);
    },
  };
};

async function open(lib: Library, protocol: Open): Promise<{ seller: Setup; client: Client; url: string }> {
  let made: { seller: Setup; url: string } | undefined;
  const client = await protocol(async (url) => {
    if (!lib.node) throw new Error('no node door');
    const seller = await setup(lib, { publicUrl: url, allowLoopback: true });
    made = { seller, url };
    return lib.node.webhookHandler(seller.receiver);
  });
  if (!made) throw new Error('no receiver');
  return { ...made, client };
}

const KIB = 1024;

/** 200, 401, 415 and 413; a large body that is refused unread must neither hang the sender nor end the process. KiB. */
const served =
  (protocol: Open, { unread, over }: { readonly unread: number; readonly over: number }): Check =>
  async (lib) => {
    const { seller, client, url } = await open(lib, protocol);
    const event = envelope();
    const first = await seller.sign(event, { url });
    same(await client.post(first.headers, first.body), '200');
    same(await client.post(first.headers, first.body), '401 webhook_signature_replayed');
    const answers = await Promise.all(
      Array.from({ length: 8 }, (_, index) =>
        index % 2 === 0
          ? client.post({ 'content-type': 'text/plain' }, new Uint8Array(unread * KIB))
          : client.post(
              { 'content-type': 'application/json', 'content-length': String(over * KIB) },
              new Uint8Array(over * KIB),
            ),
      ),
    );
    same([...new Set(answers)].sort(), ['413', '415']);
    const next = await seller.sign(envelope(), { url });
    same(await client.post(next.headers, next.body), '200', 'and the next delivery:');
    same(seller.handled.length, 2);
    await client.close();
    await seller.receiver.stop();
  };

export const NODE_CHECKS: Checks = {
  'the node door over HTTP/1.1: large bodies refused unread': served(http1, { unread: 900, over: 1500 }),
  'the node door over HTTP/2: large bodies refused unread': served(http2, { unread: 4096, over: 4096 }),
};
