// Starts `proto-webhooks dev`, a local sender of test webhooks. It routes each request to the API, a seller, a document
// or the page. The subcommand `dev` calls it (docs/spec/dev.md).
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { resolve } from 'node:path';
import { UsageError } from '../cli/shell.ts';
import { DEFAULT_RETRY } from '../testing/seller-post.ts';
import { answerApi, type ApiParts } from './api.ts';
import { ApiError } from './api-error.ts';
import { sendJson } from './body.ts';
import { createCaptures } from './captures.ts';
import { choicesOf } from './choices.ts';
import { calledSellers } from './called-seller.ts';
import { createDeliveryLog } from './delivery-log.ts';
import { createEvents } from './events.ts';
import { openFolder, removePort, writePort } from './folder.ts';
import { isOfPage, sendPage } from './page-files.ts';
import { DEFAULT_EDITION, payloadsOf } from './payloads.ts';
import { createScenarioRuns } from './scenario-runs.ts';
import { SCENARIOS } from './scenarios.ts';
import { createGuard } from './security.ts';
import { createSellers, type Destination, shownSeller } from './sellers.ts';
import { createSending } from './sending.ts';
import { createTelling } from './telling.ts';
import { watchReceiver } from './watcher.ts';
import type { DevState, ReceiverState } from './wire.ts';

/** Options of `startDev`. The subcommand `dev` makes them of its flags. */
export interface DevOptions extends Destination {
  /** The port to listen at; 0 takes any free port. */
  readonly port: number;
  /** The directory to which relative paths refer. */
  readonly cwd: string;
  readonly dir: string;
  /** The folder of captured requests (the receiver's option `captureRefused`). */
  readonly refused: string;
  readonly protocol: string;
  /** The version of the package `proto-webhooks`. */
  readonly version: string;
  /** The folder that has the files of dev's web page. */
  readonly page: URL;
  /** The time limit for a receiver's answer, ms. Default: 10 000, as real sellers have it. */
  readonly timeoutMs?: number;
  /** Returns the current time, Unix ms. */
  readonly now: () => number;
  /** Called when the receiver becomes reachable, and when it becomes unreachable. */
  readonly receiver: (state: ReceiverState) => void;
  /** Called for an unexpected error in dev itself. */
  readonly fault: (error: unknown) => void;
}

/** A running instance of dev. */
export interface Dev {
  readonly port: number;
  readonly token: string;
  /** The address of dev's page, with the token in the fragment. */
  readonly url: string;
  readonly sellers: DevState['sellers'];
  readonly close: () => Promise<void>;
}

type Server = ReturnType<typeof createServer>;

const REASONS: Readonly<Record<string, string>> = {
  EADDRINUSE: 'another process listens there, perhaps another dev. End it',
  EACCES: 'this user may not listen there. Take one from 1024 on',
};

/** Listens on 127.0.0.1, and resolves with the port. @throws UsageError (rejects) if the port cannot be used */
async function listen(server: Server, port: number): Promise<number> {
  await new Promise<void>((ready, reject) => {
    server.once('error', ({ code = '', message }: NodeJS.ErrnoException) => {
      const why = REASONS[code] ?? message;
      reject(
        new UsageError(
          `--port: ${port}: ${why}, or name another port by --port; the agent URLs then have that one.`,
        ),
      );
    });
    server.listen(port, '127.0.0.1', ready);
  });
  const address = server.address();
  return typeof address === 'object' && address !== null ? address.port : port;
}

type Answer = (request: IncomingMessage, response: ServerResponse) => Promise<void>;

/** Wraps the handler of all requests. Each error is answered with JSON, and no request can end the process. */
function safely(answer: Answer, fault: DevOptions['fault']): (...exchange: Parameters<Answer>) => void {
  return (request, response) => {
    answer(request, response).catch((error: unknown) => {
      const refusal =
        error instanceof ApiError ? error : new ApiError('internal', 'A fault of dev. The terminal has it.');
      if (refusal !== error) fault(error);
      if (response.headersSent) return response.destroy();
      return sendJson(response, refusal.status, refusal, {
        ...(refusal.allow !== undefined && { Allow: refusal.allow }),
        ...(refusal.status === 401 && { 'WWW-Authenticate': 'Bearer' }),
        // The connection is closed, because the rest of the request body stays unread.
        ...(!request.complete && { Connection: 'close' }),
      });
    });
  };
}

/**
 * Starts dev: its sellers, its API and its page.
 * @throws UsageError (rejects) for a folder or a port that cannot be used.
 */
export async function startDev(options: DevOptions): Promise<Dev> {
  const { cwd, protocol, now, forward, publicUrl, version, timeoutMs = DEFAULT_RETRY.timeoutMs } = options;
  const dir = resolve(cwd, options.dir);
  const folder = await openFolder(dir);
  const late: { answer?: Answer } = {};
  // The handler `late.answer` is set further below, because it needs the port. No request comes before that: once the
  // server listens, nothing is awaited until the handler is set.
  const server = createServer(safely(async (...exchange) => late.answer?.(...exchange), options.fault));
  const port = await listen(server, options.port);
  const ended = new AbortController();
  const { signal } = ended;
  const sellers = createSellers(folder, port, { forward, publicUrl });
  const events = createEvents();
  const log = createDeliveryLog((row) => events.emit('delivery', row));
  const sending = createSending({ sellers, log, protocol, now, timeoutMs, signal });
  const calls = calledSellers({
    sellers: sellers.list,
    protocol,
    brandJsonUrl: sellers.brandJsonUrl,
    now,
    heard: (call) => events.emit('call', call),
    deliver: ({ scheme }, { payload, ...draft }) => {
      const edition = DEFAULT_EDITION;
      sending
        .sendDraft({
          ...draft,
          seller: sellers.byScheme[scheme],
          payload: payload(payloadsOf(edition, now)),
          row: { edition },
        })
        .catch(options.fault);
    },
  });
  const all = { ...SCENARIOS, ...calls.scenarios };
  const scenarios = createScenarioRuns({
    scenarios: all,
    sellers,
    sending,
    now,
    signal,
    changed: (run) => events.emit('scenario', run),
  });
  let hookHeard = false;
  const tell = createTelling({ sellers, log, now, heard: (event) => events.emit('hook', event) });
  const watcher = watchReceiver({
    forward,
    now,
    changed: (state) => {
      // The receiver may come back without `devHooks`, so earlier reports no longer prove that it has them.
      if (state.state === 'down') hookHeard = false;
      events.emit('receiver', state);
      options.receiver(state);
    },
  });
  const choices = choicesOf(all);
  const parts: ApiParts = {
    log,
    events,
    sending,
    scenarios,
    protocol,
    captures: createCaptures({
      sellers,
      log,
      protocol,
      now,
      folder: options.refused,
      path: resolve(cwd, options.refused),
    }),
    tell: (told) => {
      hookHeard = true;
      calls.told(told);
      tell(told);
    },
    state: () => ({
      version,
      port,
      forward,
      publicUrl,
      protocol,
      sellers: sellers.list.map(shownSeller),
      receiver: watcher.state(),
      hookHeard,
      lastEvent: events.last(),
      scenarios: scenarios.list(),
      choices,
    }),
  };
  const guard = createGuard(port, folder.token);

  const close = async (): Promise<void> => {
    watcher.stop();
    ended.abort();
    events.close();
    const closed = new Promise<void>((done) => void server.close(() => done()));
    server.closeAllConnections();
    await closed;
    await removePort(dir, port);
  };

  late.answer = async (request, response) => {
    guard.requireLocal(request);
    const url = urlOf(request, port);
    const { pathname } = url;
    if (pathname.startsWith('/api/')) {
      guard.requireToken(request);
      return answerApi(request, response, url, parts);
    }
    const seller = sellers.at(pathname);
    if (seller) return calls.answer(seller, request, response);
    const document = sellers.documents.get(pathname);
    if (request.method !== 'GET' && (document || isOfPage(pathname))) {
      throw new ApiError('method_not_allowed', 'Expected GET.', 'GET');
    }
    if (document) return sendJson(response, 200, document());
    if (isOfPage(pathname)) return sendPage(pathname, options.page, response);
    throw new ApiError('not_found', 'There is nothing at this path.');
  };
  try {
    await writePort(dir, port);
  } catch (error) {
    await close();
    throw error;
  }
  return {
    port,
    token: folder.token,
    url: `http://127.0.0.1:${port}/#${folder.token}`,
    sellers: sellers.list.map(shownSeller),
    close,
  };
}

/** Parses the URL of a request. @throws ApiError `not_found` if the request target is not a path */
function urlOf({ url = '' }: IncomingMessage, port: number): URL {
  const origin = `http://127.0.0.1:${port}`;
  if (url.startsWith('/') && !url.startsWith('//') && URL.canParse(url, origin)) return new URL(url, origin);
  throw new ApiError('not_found', 'There is nothing at this path.');
}
