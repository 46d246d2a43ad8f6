import { mkdtempSync, rmSync } from 'node:fs';
import type { RequestListener } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { onTestFinished } from 'vitest';
import { webhookHandler } from '../../src/adapters/node.ts';
import {
  type Dev,
  type DevError,
  type DevOptions,
  type DeliveryFull,
  type DeliveryRow,
  type DevScheme,
  type DevState,
  type ScenarioRun,
  type SendRequest,
  startDev,
} from '../../src/dev/for-tests.ts';
import { createReceiver, type ReceiverOptions, type Sender } from '../../src/index.ts';
import { memoryStore } from '../../src/stores/memory.ts';
import { type Listening, listening } from '../adapters/raw-client.ts';
import { SILENT_LOGGER } from '../support/silent-logger.ts';

const newFolder = (): string => mkdtempSync(join(tmpdir(), 'proto-webhooks-dev-'));

/** A folder that is gone when the test has ended. */
export function folder(): string {
  const path = newFolder();
  onTestFinished(() => rmSync(path, { recursive: true, force: true }));
  return path;
}

/** Dev on a free port, in a folder of its own unless one is given. @returns `end`: it throws if dev had faults. */
export async function openDev(
  options: Partial<DevOptions> = {},
): Promise<{ readonly dev: Dev; readonly cwd: string; readonly end: () => Promise<void> }> {
  const faults: unknown[] = [];
  const { forward = 'http://127.0.0.1:9/hook', cwd = newFolder() } = options;
  const dev = await startDev({
    forward,
    publicUrl: forward,
    port: 0,
    cwd,
    dir: '.proto-webhooks',
    refused: 'refused',
    protocol: 'proto',
    version: '0.0.0',
    page: pathToFileURL(`${cwd}/page/`),
    now: Date.now,
    receiver: () => undefined,
    fault: (error) => faults.push(error),
    ...options,
  });
  const end = async (): Promise<void> => {
    await dev.close();
    if (options.cwd === undefined) rmSync(cwd, { recursive: true, force: true });
    if (faults.length > 0) throw new AggregateError(faults, 'dev had faults');
  };
  return { dev, cwd, end };
}

/** The same; it ends with the test. */
export async function startedDev(options: Partial<DevOptions> = {}): Promise<Dev> {
  const { dev, end } = await openDev(options);
  onTestFinished(end);
  return dev;
}

export interface Answer<T> {
  readonly status: number;
  readonly body: T & Partial<DevError>;
  readonly headers: Headers;
}

/** Asks the API with the token. @param body makes it a POST. */
export async function ask<T>(
  dev: Pick<Dev, 'port' | 'token'>,
  path: string,
  body?: object,
  init: RequestInit = {},
): Promise<Answer<T>> {
  const post = body && { method: 'POST', body: JSON.stringify(body) };
  const headers = {
    Authorization: `Bearer ${dev.token}`,
    ...(body && { 'Content-Type': 'application/json' }),
  };
  const response = await fetch(`http://127.0.0.1:${dev.port}/api/${path}`, { headers, ...post, ...init });
  return {
    status: response.status,
    body: (await response.json()) as Answer<T>['body'],
    headers: response.headers,
  };
}

/** Dev, and a receiver behind real HTTP that has all its sellers, each at a path of its own. */
export interface World {
  readonly dev: Dev;
  readonly receiver: Listening;
  readonly handled: readonly string[];
  readonly send: (request: SendRequest) => Promise<DeliveryRow>;
  readonly full: (id: number) => Promise<DeliveryFull>;
  readonly state: () => Promise<DevState>;
  /** Runs a scenario to its end. */
  readonly play: (name: string, order?: object) => Promise<ScenarioRun>;
}

export interface WorldOptions extends Partial<Omit<ReceiverOptions, 'senders'>> {
  /** In place of a receiver. */
  readonly listener?: RequestListener;
  readonly dev?: Partial<DevOptions>;
}

const AUTHS = /auth: \{ (hmac|bearer): \{ (secret|token): '([^']+)' \} \}/;

/** The senders that the lines of the page say, as a developer would paste them. */
function pasted(dev: Dev): Record<string, readonly Sender[]> {
  return Object.fromEntries(
    dev.sellers.map(({ scheme, agentUrl, line }) => {
      const entry = line.slice(line.indexOf(agentUrl) - 15).split(']')[0] ?? '';
      const [, kind, member = '', value] = AUTHS.exec(entry) ?? [];
      const auth = kind === undefined ? {} : { auth: { [kind]: { [member]: value } } as Sender['auth'] };
      return [`/webhooks/${scheme}`, [{ agentUrl, ...auth } as Sender]];
    }),
  );
}

export async function world({ listener, dev: devOptions, ...options }: WorldOptions = {}): Promise<World> {
  const handled: string[] = [];
  const late: { listener?: RequestListener | undefined } = { listener };
  const receiver = await listening((req, res) => late.listener?.(req, res));
  const dev = await startedDev({
    forward: `${receiver.url}/webhooks/*`,
    publicUrl: `${receiver.url}/webhooks/*`,
    ...devOptions,
  });
  if (!listener) {
    const made = createReceiver({
      publicUrl: `${receiver.url}/webhooks/*`,
      senders: pasted(dev),
      store: memoryStore(),
      allowLoopback: true,
      logger: SILENT_LOGGER,
      onChallenge: async ({ authMatches }) => authMatches,
      handlers: {
        other: async (event) => void handled.push(event.kind === 'task' ? event.status : event.kind),
      },
      ...options,
    });
    late.listener = webhookHandler(made);
    onTestFinished(async () => made.stop());
  }
  onTestFinished(async () => receiver[Symbol.asyncDispose]());
  const ok = async <T>(path: string, body?: object): Promise<T> => {
    const answer = await ask<T>(dev, path, body);
    if (answer.status !== 200) throw new Error(JSON.stringify(answer.body));
    return answer.body;
  };
  const state = (): Promise<DevState> => ok('state');
  return {
    dev,
    receiver,
    handled,
    state,
    send: (request) => ok('send', request),
    full: (id) => ok(`deliveries/${id}`),
    async play(name, order = {}) {
      const { run } = await ok<{ run: number }>(`scenarios/${name}`, order);
      for (;;) {
        const found = (await state()).scenarios.find((one) => one.run === run);
        if (found && (found.state === 'passed' || found.state === 'failed')) return found;
        await new Promise((resolve) => void setTimeout(resolve, 10));
      }
    },
  };
}

export const SCHEMES: readonly DevScheme[] = ['signature', 'hmac', 'bearer'];
