import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { onTestFinished } from 'vitest';

export type Answerer = (req: IncomingMessage, res: ServerResponse) => void;

/** A server on loopback that says what the test tells it to, and counts. */
export interface KeyServer {
  readonly origin: string;
  readonly host: string;
  /** Sets the answer at a path: a value is sent as JSON. */
  readonly serve: (path: string, answer: unknown, headers?: Readonly<Record<string, string>>) => void;
  readonly answer: (path: string, answerer: Answerer) => void;
  /** Requests at a path so far, or at all paths. */
  readonly count: (path?: string) => number;
  /** Resolves when a path was asked for `count` times in all. */
  readonly asked: (path: string, count: number) => Promise<void>;
  /** No more connections: an outage. */
  readonly close: () => Promise<void>;
}

export async function startKeyServer(): Promise<KeyServer> {
  const answers = new Map<string, Answerer>();
  const seen: string[] = [];
  const waiting: (() => void)[] = [];
  const server = createServer((req, res) => {
    const path = req.url ?? '';
    seen.push(path);
    for (const look of waiting) look();
    const answerer = answers.get(path);
    if (answerer) answerer(req, res);
    else res.writeHead(404).end();
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const count = (path?: string): number => seen.filter((at) => path === undefined || at === path).length;
  const close = async (): Promise<void> => {
    if (!server.listening) return;
    server.closeAllConnections();
    await new Promise((resolve) => {
      server.close(resolve);
    });
  };
  onTestFinished(close);
  return {
    origin: `http://127.0.0.1:${port}`,
    host: `127.0.0.1:${port}`,
    serve: (path, answer, headers = {}) => {
      answers.set(path, sends(JSON.stringify(answer), headers));
    },
    answer: (path, answerer) => {
      answers.set(path, answerer);
    },
    count,
    asked: (path, wanted) =>
      new Promise((resolve) => {
        const look = (): void => {
          if (count(path) >= wanted) resolve();
        };
        waiting.push(look);
        look();
      }),
    close,
  };
}

export function sends(body: string, headers: Readonly<Record<string, string>> = {}): Answerer {
  return (_req, res) => {
    res.writeHead(200, { 'content-type': 'application/json', ...headers }).end(body);
  };
}

export interface Latch {
  readonly opened: Promise<void>;
  readonly open: () => void;
}

export function latch(): Latch {
  let open = (): void => undefined;
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  return {
    opened,
    open: () => {
      open();
    },
  };
}

/** Answers only once it is opened. */
export interface Gate extends Latch {
  readonly answerer: Answerer;
}

export function gate(then: Answerer): Gate {
  const held = latch();
  return {
    ...held,
    answerer: (req, res) => {
      void (async () => {
        await held.opened;
        then(req, res);
      })();
    },
  };
}
