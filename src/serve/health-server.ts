// Serves health and metrics on a separate port (serve.md §3.2). `serve.ts` starts it.
import { createServer, type RequestListener, type Server, type ServerResponse } from 'node:http';
import type { Instance } from './instance.ts';

/** The sources of the pages on the separate port (serve.md §3.2). */
interface HealthParts {
  /** Returns the instance (receiver, store and sink) that currently serves. */
  readonly current: () => Instance;
  /** Answers `/metrics`. Absent: metrics are off. */
  readonly metrics?: RequestListener | undefined;
}

function answer(res: ServerResponse, status: number, value: object): void {
  res.writeHead(status, { 'content-type': 'application/json', 'cache-control': 'no-store' });
  res.end(`${JSON.stringify(value)}\n`);
}

/**
 * Answers with the state of the process. A paused sink (destination of events) is reported, but the process stays
 * ready, because deliveries are stored.
 */
async function state(instance: Instance, name: 'live' | 'ready', res: ServerResponse): Promise<void> {
  const { live, ready, store, worker, senders } = await instance.receiver.health();
  const sink = { name: instance.sink.name, ...instance.sinkState() };
  answer(res, { live, ready }[name] ? 200 : 503, { live, ready, store, worker, sink, senders });
}

/** Serves `/livez`, `/readyz` and `/metrics`. */
export function healthServer({ current, metrics }: HealthParts): Server {
  const pages: Readonly<Record<string, RequestListener>> = {
    '/livez': (_, res) => void state(current(), 'live', res),
    '/readyz': (_, res) => void state(current(), 'ready', res),
    ...(metrics && { '/metrics': metrics }),
  };
  return createServer((req, res) => {
    const [path = ''] = (req.url ?? '').split('?');
    const page = Object.hasOwn(pages, path) ? pages[path] : undefined;
    if (!page) return answer(res, 404, { error: `known: ${Object.keys(pages).join(', ')}` });
    if (req.method !== 'GET' && req.method !== 'HEAD') return answer(res, 405, { error: 'GET only' });
    return page(req, res);
  });
}
