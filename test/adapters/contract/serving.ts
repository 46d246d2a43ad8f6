import { once } from 'node:events';
import type { Server } from 'node:http';
import { connect, type Http2Server, type IncomingHttpHeaders, type OutgoingHttpHeaders } from 'node:http2';
import type { AddressInfo } from 'node:net';
import type { AdapterReceiver } from '../../../src/adapters/node.ts';
import { rawClient } from '../raw-client.ts';
import { answerOf, firstAnswer, message, type WireAnswer, type WireRequest } from './wire.ts';

/** A door that is open, until the end of the scope. */
export interface Asking extends AsyncDisposable {
  readonly ask: (request: WireRequest) => Promise<WireAnswer>;
  /** Where there is a server. */
  readonly port: number;
}

async function portOf(server: Server | Http2Server): Promise<number> {
  await once(server.listen(0, '127.0.0.1'), 'listening');
  return (server.address() as AddressInfo).port;
}

/** What a case may need that not every door can have. */
export type Capability =
  /** Repeated header lines can be sent and are all handed over. */
  | 'repeated lines'
  /** A header line of Latin-1 octets arrives. */
  | 'octets'
  /** `POST http://authority/path HTTP/1.1` arrives as such. */
  | 'absolute-form'
  /** With a `publicUrl` that ends in `/*`: dot segments and quotes in the query arrive as they were sent. */
  | 'exact target'
  /** The query arrives as it was sent, in its order and spelling. */
  | 'exact query'
  /** A `?` with nothing behind it arrives. */
  | 'empty query'
  /** `:authority` beside `Host`. */
  | 'authority'
  /** `Content-Length` is the door's to write. */
  | 'length'
  /** A body reaches the door in pieces, over a connection. */
  | 'streams'
  /** The door ends the connection itself, where a body is left unread. */
  | 'closes';

/** One adapter in one framework, as its users wire it. */
export interface DoorHarness {
  readonly name: string;
  /** What it cannot have, and why. */
  readonly lacks: Partial<Record<Capability, string>>;
  readonly open: (receiver: AdapterReceiver, options?: OpenOptions) => Promise<Asking>;
}

export interface OpenOptions {
  /** Something in front reads the body first, as a careless app does. */
  readonly consumed?: true;
}

/** Over a raw socket: what is sent is what was asked for, byte for byte. */
export async function overHttp1(server: Server): Promise<Asking> {
  const port = await portOf(server);
  return {
    port,
    ask: async (request) => {
      const client = await rawClient(port);
      const headers = [...request.headers, ['Connection', 'close'] as const];
      client.socket.write(message({ ...request, headers }));
      return firstAnswer(await client.closed());
    },
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}

/** `Host` becomes `:authority`, unless a case says otherwise. */
function pseudoHeaders({ method, target, headers, authority }: WireRequest): OutgoingHttpHeaders {
  const host = headers.find(([name]) => name === 'Host')?.[1] ?? '';
  const rest = headers.filter(([name]) => authority !== undefined || name !== 'Host');
  return {
    ':method': method,
    ':path': target,
    ':authority': authority ?? host,
    ...Object.fromEntries(rest.map(([name, value]) => [name.toLowerCase(), value])),
  };
}

export async function overHttp2(server: Http2Server): Promise<Asking> {
  const port = await portOf(server);
  const session = connect(`http://127.0.0.1:${port}`);
  session.on('error', () => undefined);
  return {
    port,
    ask: async (request) => {
      const length = request.chunked ? {} : { 'content-length': request.body.byteLength };
      const stream = session.request({ ...pseudoHeaders(request), ...length }, { endStream: false });
      // A stream may be reset after its answer.
      stream.on('error', () => undefined);
      const answered = once(stream, 'response') as Promise<[IncomingHttpHeaders]>;
      const chunks: Buffer[] = [];
      const ended = new Promise((resolve) => stream.once('close', resolve));
      stream.on('data', (chunk: Buffer) => chunks.push(chunk));
      stream.end(request.body);
      const [{ ':status': status, ...headers }] = await answered;
      await ended;
      const lines = Object.entries(headers).map(([name, value]): [string, string] => [name, String(value)]);
      return answerOf(Number(status), lines, Buffer.concat(chunks).toString('latin1'));
    },
    [Symbol.asyncDispose]: async () => {
      session.destroy();
      server.close();
      await once(server, 'close');
    },
  };
}
