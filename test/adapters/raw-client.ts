import { once, type EventEmitter } from 'node:events';
import type { RequestListener, Server } from 'node:http';
import { createServer } from 'node:http';
import { connect, type AddressInfo, type Socket } from 'node:net';

/** A server on loopback that is closed, connections and all, at the end of the scope. */
export interface Listening extends AsyncDisposable {
  readonly server: Server;
  readonly port: number;
  readonly url: string;
}

export async function listening(listener: RequestListener): Promise<Listening> {
  const server = createServer(listener);
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    server,
    port,
    url: `http://127.0.0.1:${port}`,
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}

/** Resolves at `close`, with or without an `error` before it (`events.once` would reject). */
export const closing = (emitter: EventEmitter): Promise<void> =>
  new Promise((resolve) => void emitter.once('close', resolve));

/** A socket that writes what no HTTP client would. */
export interface RawClient {
  readonly socket: Socket;
  send(...lines: readonly string[]): void;
  /** All that was received so far, once it matches. Rejects where the connection ends before. */
  until(pattern: RegExp): Promise<string>;
  /** All that was received, once the server has closed the connection. */
  closed(): Promise<string>;
}

export async function rawClient(port: number): Promise<RawClient> {
  const socket = connect(port, '127.0.0.1');
  await once(socket, 'connect');
  let received = '';
  socket.setEncoding('latin1');
  socket.on('data', (chunk: string) => (received += chunk));
  // A server that stops reading may reset the connection after its answer.
  socket.on('error', () => undefined);
  const closed = closing(socket).then(() => received);
  return {
    socket,
    send: (...lines) => void socket.write(lines.join('\r\n'), 'latin1'),
    until: (pattern) =>
      new Promise((resolve, reject) => {
        const look = (): void => {
          if (pattern.test(received)) resolve(received);
        };
        socket.on('data', look);
        socket.on('close', () => reject(new Error(`closed after ${JSON.stringify(received)}`)));
        look();
      }),
    closed: () => closed,
  };
}

export const POST = (...more: readonly string[]): readonly string[] => [
  'POST /hook HTTP/1.1',
  'Host: buyer.example',
  'Content-Type: application/json',
  ...more,
];

export const statuses = (received: string): readonly number[] =>
  [...received.matchAll(/^HTTP\/1\.1 (\d{3})/gm)].map((match) => Number(match[1]));
