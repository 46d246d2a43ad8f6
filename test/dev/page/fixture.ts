import axe from 'axe-core';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer, type RequestListener, type Server } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Browser, BrowserContextOptions, Page } from 'playwright-core';
import type { DevSeller, DevScheme } from '../../../src/dev/for-tests.ts';
import { createReceiver, type Receiver, type ReceiverOptions } from '../../../src/index.ts';
import { webhookHandler } from '../../../src/adapters/node.ts';
import { memoryStore } from '../../../src/stores/memory.ts';
import { devHooks } from '../../../src/testing/index.ts';
import { CLI } from '../../cli/run-cli.ts';
import { freePort } from '../../support/free-port.ts';
import { SILENT_LOGGER } from '../../support/silent-logger.ts';

/** `proto-webhooks dev` as users have it, in a process and a working directory of its own. */
export interface DevProcess {
  /** The page's address, with the token. */
  readonly url: string;
  readonly folder: string;
  /** The receiver's port. */
  readonly forwardPort: number;
  readonly seller: (scheme: DevScheme) => DevSeller;
  readonly kill: () => Promise<void>;
  /** Starts it again on its port and folder. */
  readonly start: () => Promise<void>;
  readonly remove: () => Promise<void>;
}

interface Started {
  readonly url: string;
  readonly sellers: readonly DevSeller[];
}

/** What it prints once it listens: one JSON object. */
async function startedOf({ stdout }: ChildProcess): Promise<Started> {
  let text = '';
  for await (const chunk of stdout ?? []) {
    text += String(chunk);
    if (/^\}\s*$/m.test(text)) return JSON.parse(text) as Started;
  }
  throw new Error(`dev ended before it listened: ${text}`);
}

/** @param ports of dev and of the receiver; free ones if there are none. */
export async function startDevProcess(ports?: readonly [dev: number, receiver: number]): Promise<DevProcess> {
  const folder = mkdtempSync(join(tmpdir(), 'proto-webhooks-dev-page-'));
  const [port, forwardPort] = ports ?? [await freePort(), await freePort()];
  const forward = `http://127.0.0.1:${forwardPort}/webhooks/seller`;
  const args = ['dev', '--json', '--port', `${port}`, '--forward', forward];
  let child: ChildProcess;
  let started: Started;
  const start = async (): Promise<void> => {
    child = spawn(process.execPath, ['--no-warnings', CLI, ...args], {
      cwd: folder,
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    started = await startedOf(child);
  };
  const kill = async (): Promise<void> => {
    const gone = once(child, 'exit');
    if (child.exitCode === null && child.kill('SIGKILL')) await gone;
  };
  await start();
  return {
    folder,
    forwardPort,
    get url() {
      return started.url;
    },
    seller(scheme) {
      const found = started.sellers.find((seller) => seller.scheme === scheme);
      if (!found) throw new Error(`no seller ${scheme}`);
      return found;
    },
    start,
    kill,
    remove: async () => {
      await kill();
      rmSync(folder, { recursive: true });
    },
  };
}

/** What the line of a seller says, pasted into the options of a receiver. */
export const pasted = (line: string): Pick<ReceiverOptions, 'senders' | 'allowLoopback'> =>
  // oxlint-disable-next-line no-implied-eval, typescript/no-implied-eval, typescript/no-unsafe-call -- as a developer does it
  new Function(`return { ${line} };`)() as Pick<ReceiverOptions, 'senders' | 'allowLoopback'>;

/** A receiver with dev's hooks, served where dev posts to; both end with the scope. */
export interface Served extends AsyncDisposable {
  readonly receiver: Receiver;
  readonly end: () => Promise<void>;
}

export type Mount = (receiver: Receiver) => RequestListener;

export async function listening(server: Server, port: number): Promise<() => Promise<void>> {
  server.listen(port, '127.0.0.1');
  await once(server, 'listening');
  return async () => {
    if (!server.listening) return;
    const closed = once(server, 'close');
    server.close();
    server.closeAllConnections();
    await closed;
  };
}

export async function receive(
  dev: DevProcess,
  options: Partial<ReceiverOptions> & { readonly scheme?: DevScheme } = {},
  mount: Mount = webhookHandler,
): Promise<Served> {
  const { scheme = 'signature', ...others } = options;
  const { line, publicUrl } = dev.seller(scheme);
  const receiver = createReceiver({
    publicUrl,
    ...pasted(line),
    store: memoryStore(),
    logger: SILENT_LOGGER,
    handlers: { other: async () => undefined },
    ...devHooks({ dir: join(dev.folder, '.proto-webhooks') }),
    ...others,
  });
  const close = await listening(createServer(mount(receiver)), dev.forwardPort);
  const end = async (): Promise<void> => {
    await receiver.stop();
    await close();
  };
  return { receiver, end, [Symbol.asyncDispose]: end };
}

/** Two sizes of a screen. */
export const SIZES = {
  wide: { width: 1440, height: 900 },
  narrow: { width: 390, height: 800 },
} as const;

/** The page in a browser of its own memory, and what it has complained of. */
export interface Opened extends AsyncDisposable {
  readonly page: Page;
  /** Errors of its console, of its scripts, and of the content security policy; requests to other hosts. */
  readonly complaints: readonly string[];
}

export async function openPage(
  browser: Browser,
  url: string,
  options: BrowserContextOptions = {},
  heading = 'Deliveries',
): Promise<Opened> {
  const context = await browser.newContext({
    viewport: SIZES.wide,
    reducedMotion: 'reduce',
    permissions: ['clipboard-read', 'clipboard-write'],
    ...options,
  });
  await context.addInitScript(axe.source);
  const page = await context.newPage();
  const complaints: string[] = [];
  page.on('console', (message) => {
    if (message.type() === 'error') complaints.push(message.text());
  });
  page.on('pageerror', (error) => complaints.push(error.message));
  page.on('dialog', (dialog) => {
    complaints.push(`a dialog: ${dialog.message()}`);
    void dialog.dismiss();
  });
  page.on('request', (request) => {
    if (new URL(request.url()).host !== new URL(url).host) complaints.push(`asks ${request.url()}`);
  });
  await page.goto(url);
  await page.getByRole('heading', { name: heading }).waitFor();
  return { page, complaints, [Symbol.asyncDispose]: async () => context.close() };
}

interface AxeResult {
  readonly violations: readonly {
    readonly id: string;
    readonly nodes: readonly { readonly html: string; readonly failureSummary: string }[];
  }[];
}

/** What a person with an impairment could not use, by axe-core. */
export async function inaccessible(page: Page): Promise<readonly string[]> {
  const { violations } = (await page.evaluate("axe.run({ resultTypes: ['violations'] })")) as AxeResult;
  return violations.map(({ id, nodes }) => `${id}: ${nodes[0]?.html} ${nodes[0]?.failureSummary}`);
}

/** The newest row of the list, once it is answered. */
export const newest = (page: Page): ReturnType<Page['locator']> => page.locator('#list .row').first();

/** Sends what the form has, and waits until the detail shows it. */
export async function send(page: Page): Promise<void> {
  const before = await page.locator('#list .row').count();
  await page.getByRole('button', { name: 'Send', exact: true }).click();
  await page.locator('#list .row').nth(before).waitFor({ state: 'attached' });
  await page.locator('.detail').waitFor();
}
