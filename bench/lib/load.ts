import { once } from 'node:events';
import { connect, type Socket } from 'node:net';

/** One connection of HTTP/1.1 that is kept, written by hand: the load must cost less than what it measures. */
export interface Connection {
  /** Sends a whole request and gives the status. One at a time. @throws Error where the connection ends first. */
  readonly post: (request: Uint8Array) => Promise<number>;
  readonly close: () => void;
}

interface Waiting {
  readonly resolve: (status: number) => void;
  readonly reject: (error: Error) => void;
}

const LENGTH = /\r\ncontent-length: *(\d+)/i;
const CHUNKED = /\r\ntransfer-encoding: *chunked/i;

/** Status of the answer that `text` is, once it is whole. */
function wholeAnswer(text: string): number | undefined {
  const head = text.indexOf('\r\n\r\n');
  if (head === -1) return undefined;
  const fields = text.slice(0, head);
  const length = Number(LENGTH.exec(fields)?.[1] ?? 0);
  const whole = CHUNKED.test(fields) ? text.endsWith('\r\n0\r\n\r\n') : text.length >= head + 4 + length;
  return whole ? Number(text.slice(9, 12)) : undefined;
}

export async function openConnection(port: number): Promise<Connection> {
  const socket: Socket = connect({ port, host: '127.0.0.1', noDelay: true });
  await once(socket, 'connect');
  let waiting: Waiting | undefined;
  let text = '';
  socket.setEncoding('latin1');
  socket.on('data', (chunk: string) => {
    text += chunk;
    const status = wholeAnswer(text);
    if (status === undefined) return;
    text = '';
    waiting?.resolve(status);
  });
  const gone = (): void => waiting?.reject(new Error('the server closed the connection'));
  socket.on('error', gone).on('close', gone);
  return {
    post: (request) =>
      new Promise((resolve, reject) => {
        waiting = { resolve, reject };
        if (socket.destroyed) gone();
        else socket.write(request);
      }),
    close: () => void socket.destroy(),
  };
}

export function openConnections(port: number, count: number): Promise<Connection[]> {
  return Promise.all(Array.from({ length: count }, () => openConnection(port)));
}

export function closeAll(connections: readonly Connection[]): void {
  for (const { close } of connections) close();
}

/** Each connection sends its next request as soon as it has its answer. */
export async function sendAll(
  connections: readonly Connection[],
  requests: readonly Uint8Array[],
  expected: number,
): Promise<void> {
  let next = 0;
  await Promise.all(
    connections.map(async ({ post }) => {
      for (let request = requests[next]; request; request = requests[next]) {
        next += 1;
        const status = await post(request);
        if (status !== expected) throw new Error(`answered ${status}, not ${expected}`);
      }
    }),
  );
}

/** Requests that go out at their time, whatever became of the ones before. */
export interface Stream {
  readonly connections: readonly Connection[];
  readonly requests: readonly Uint8Array[];
  readonly perSecond: number;
  readonly expected: number;
}

const TICK_MS = 2;

/** @returns ms from the time at which each request was due to its answer: what waits for a connection counts. */
export async function sendAtRate(stream: Stream): Promise<readonly number[]> {
  const { connections, requests, perSecond, expected } = stream;
  const free = [...connections];
  const due: number[] = [];
  const latencies: number[] = [];
  const started = performance.now();
  const failures: unknown[] = [];
  let sent = 0;
  const serve = async (connection: Connection): Promise<void> => {
    for (let at = due.shift(); at !== undefined; at = due.shift()) {
      const request = requests[at] as Uint8Array;
      const status = await connection.post(request);
      if (status !== expected) throw new Error(`answered ${status}, not ${expected}`);
      latencies.push(performance.now() - started - (at * 1000) / perSecond);
    }
    free.push(connection);
  };
  while (latencies.length < requests.length && failures.length === 0) {
    const upTo = Math.min(
      requests.length,
      Math.floor(((performance.now() - started) * perSecond) / 1000) + 1,
    );
    for (; sent < upTo; sent += 1) due.push(sent);
    for (const connection of free.splice(0, due.length)) {
      serve(connection).catch((error: unknown) => {
        failures.push(error);
      });
    }
    await new Promise((resolve) => {
      setTimeout(resolve, TICK_MS);
    });
  }
  if (failures.length > 0) throw failures[0];
  return latencies;
}

export function percentile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
}
