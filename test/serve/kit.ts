import { EventEmitter } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type IncomingHttpHeaders } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { expect, onTestFinished } from 'vitest';
import { readConfig, serve, type ServeEnd, type ServeOptions } from '../../src/serve/for-tests.ts';
import { createFakeSeller, type FakeSeller } from '../../src/testing/index.ts';
import { freePort } from '../support/free-port.ts';

export const SECRET = `whsec_${Buffer.alloc(32, 7).toString('base64')}`;

/** A folder that is removed when the test is over. */
export function folder(): { readonly path: string; readonly file: (name: string, text: string) => string } {
  const path = mkdtempSync(join(tmpdir(), 'proto-webhooks-serve-'));
  onTestFinished(() => rmSync(path, { recursive: true, force: true }));
  return {
    path,
    file: (name, text) => {
      writeFileSync(join(path, name), text);
      return name;
    },
  };
}

/** What a sink got. */
interface Posted {
  readonly headers: IncomingHttpHeaders;
  readonly event: Readonly<Record<string, unknown>>;
}

/** A real HTTP sink. It answers what `status` is. */
export async function httpSink(): Promise<{
  readonly url: string;
  readonly posted: Posted[];
  status: number;
  readonly connections: () => Promise<number>;
}> {
  const sink = {
    url: '',
    posted: [] as Posted[],
    status: 200,
    connections: () => new Promise<number>((resolve) => server.getConnections((_, count) => resolve(count))),
  };
  const server = createServer((req, res) => {
    const answer = (body: Buffer): void => {
      if (req.method === 'POST') {
        sink.posted.push({ headers: req.headers, event: JSON.parse(body.toString()) as Posted['event'] });
      }
      res.writeHead(req.method === 'OPTIONS' ? 405 : sink.status).end();
    };
    buffer(req).then(answer, () => res.destroy());
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => server.close().closeAllConnections());
  sink.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/events`;
  return sink;
}

/** A line of the log. */
type Line = Readonly<Record<string, unknown>> & { readonly msg: string };

/** A process that serves, inside this one. */
export interface Serving {
  readonly lines: readonly Line[];
  readonly alarms: (code: string) => readonly Line[];
  readonly signals: EventEmitter;
  readonly exits: readonly number[];
  readonly ended: Promise<ServeEnd>;
  readonly stop: () => Promise<ServeEnd>;
}

/** Serves by a file. Rejects with the mistakes of the file. */
export function serving(
  file: string,
  cwd: string,
  {
    env = { SINK_SECRET: SECRET },
    ...options
  }: Partial<ServeOptions> & { env?: Record<string, string> } = {},
): Serving {
  const source = { file, cwd, env };
  const read = readConfig(source);
  if ('mistakes' in read) throw new Error(read.mistakes.join('\n'));
  const lines: Line[] = [];
  const exits: number[] = [];
  const signals = new EventEmitter();
  const ended = serve({
    source,
    config: read.config,
    write: (line) => void lines.push(JSON.parse(line) as Line),
    signals,
    exit: (code) => void exits.push(code),
    ...options,
  });
  const stop = async (): Promise<ServeEnd> => {
    signals.emit('SIGTERM');
    return ended;
  };
  onTestFinished(async () => {
    await Promise.race([ended.catch(() => undefined), stop().catch(() => undefined)]);
  });
  return {
    lines,
    alarms: (code) => lines.filter(({ alarm }) => alarm === code),
    signals,
    exits,
    ended,
    stop,
  };
}

/** A seller, a sink, a file for both, and where it is served. */
export interface World {
  readonly seller: FakeSeller;
  readonly sink: Awaited<ReturnType<typeof httpSink>>;
  readonly folder: ReturnType<typeof folder>;
  readonly port: number;
  readonly healthPort: number;
  readonly publicUrl: string;
  /** The configuration. */
  readonly yaml: (more?: string) => string;
  readonly health: (page: string) => Promise<{ readonly status: number; readonly text: string }>;
}

/** Makes one; nothing is served yet. */
export async function world(): Promise<World> {
  const [port, healthPort] = [await freePort(), await freePort()];
  const publicUrl = `http://127.0.0.1:${port}/webhooks/seller`;
  const seller = await createFakeSeller({ url: publicUrl });
  onTestFinished(() => seller.close());
  const sink = await httpSink();
  return {
    seller,
    sink,
    folder: folder(),
    port,
    healthPort,
    publicUrl,
    yaml: (more = '') => `publicUrl: ${publicUrl}
allowLoopback: true
sellers:
  - agentUrl: ${seller.agentUrl}
    brandJsonUrl: ${seller.brandJsonUrl}
listen: { port: ${port} }
health: { port: ${healthPort} }
sink: { url: '${sink.url}', secrets: [{ env: SINK_SECRET }] }
${more}`,
    health: async (page) => {
      const answer = await fetch(`http://127.0.0.1:${healthPort}${page}`);
      return { status: answer.status, text: await answer.text() };
    },
  };
}

/** Waits until it listens and its store is there. */
export async function ready(at: World): Promise<void> {
  await expect
    .poll(
      () =>
        at.health('/readyz').then(
          ({ status }) => status,
          () => 0,
        ),
      { timeout: 30_000 },
    )
    .toBe(200);
}
