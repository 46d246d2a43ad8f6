// Routes requests below `/api/` to their handlers (dev.md §4.2). dev.ts calls it once the header `Host` and the token
// were checked.
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { JsonObject } from '../codec/members.ts';
import { ApiError, badRequest } from './api-error.ts';
import { readJsonBody, sendJson } from './body.ts';
import { MOST_CAPTURE_BYTES, type Captures } from './captures.ts';
import type { DeliveryLog, Entry } from './delivery-log.ts';
import type { EventStreams } from './events.ts';
import { captureOrder, resendOrder, scenarioOrder, sendOrder, toldOrder } from './requests.ts';
import type { ScenarioRuns } from './scenario-runs.ts';
import type { Sending } from './sending.ts';
import { fullOf } from './shown.ts';
import type { DevState, ScenarioStarted, Told } from './wire.ts';

/** The parts of dev that the handlers of the API use. */
export interface ApiParts {
  readonly state: () => DevState;
  readonly log: DeliveryLog;
  readonly events: EventStreams;
  readonly sending: Sending;
  readonly scenarios: ScenarioRuns;
  readonly captures: Captures;
  readonly tell: (told: Told) => void;
  readonly protocol: string;
}

/**
 * The default size limit of a request body, bytes. The limit for captured requests is higher, because JSON escapes make
 * their text longer.
 */
const MOST_BODY = 2 * 1024 * 1024;
const MOST_CAPTURE_BODY = 2 * MOST_CAPTURE_BYTES + MOST_BODY;
const MOST_TOLD = 256 * 1024;

interface Call {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly query: URLSearchParams;
  /** The parameter in the path, e.g. the number of a delivery; empty if the route has none. */
  readonly name: string;
  /** Reads the request body as a JSON object of at most `most` bytes. */
  readonly body: (most?: number) => Promise<JsonObject>;
}

/** Returns the JSON to answer with. Returns undefined if the handler has written the response itself. */
type Handler = (call: Call, parts: ApiParts) => unknown;

/** Parses a positive whole number. @throws ApiError `bad_request` for any other text */
function wholeNumber(text: string, name: string): number {
  if (/^[1-9]\d{0,14}$/.test(text)) return Number(text);
  throw badRequest(`${name}: expected a whole number from 1 on.`);
}

function entryNamed(name: string, { log }: ApiParts): Entry {
  const entry = /^[1-9]\d{0,14}$/.test(name) ? log.get(Number(name)) : undefined;
  if (entry) return entry;
  throw new ApiError('not_found', 'There is no such delivery, or it is no longer kept.');
}

function deliveriesBefore({ query }: Call, { log }: ApiParts): unknown {
  const before = query.get('before');
  return log.page(before === null ? undefined : wholeNumber(before, 'before'));
}

function openEvents({ request, response }: Call, { events }: ApiParts): undefined {
  const id = request.headers['last-event-id'];
  if (events.open(response, typeof id === 'string' ? id : undefined)) return undefined;
  throw new ApiError('too_many_streams', 'Too many streams of events are open. Close other pages of dev.');
}

/** The handlers by path, then by method (dev.md §4.2). `*` in a path stands for a parameter. */
const ROUTES: Readonly<Record<string, Readonly<Record<string, Handler>>>> = {
  state: { GET: (_, { state }) => state() },
  deliveries: { GET: deliveriesBefore },
  'deliveries/*': { GET: ({ name }, parts) => fullOf(entryNamed(name, parts), parts.protocol) },
  'deliveries/*/resend': {
    POST: async ({ name, body }, parts) => {
      const { how } = resendOrder(await body());
      return parts.sending.resend(entryNamed(name, parts), how);
    },
  },
  send: { POST: async ({ body }, { sending }) => sending.send(sendOrder(await body())) },
  'scenarios/*': {
    POST: async ({ name, body }, { scenarios }): Promise<ScenarioStarted> => ({
      run: scenarios.start(name, scenarioOrder(await body())),
    }),
  },
  captures: {
    GET: (_, { captures }) => captures.list(),
    POST: async ({ body }, { captures, protocol }) =>
      fullOf(await captures.take(captureOrder(await body(MOST_CAPTURE_BODY))), protocol),
  },
  events: { GET: openEvents },
  told: {
    POST: async ({ body }, { tell }) => {
      tell(toldOrder(await body(MOST_TOLD)));
      return {};
    },
  },
};

/** Splits a path below `/api/` into a key of `ROUTES` and the parameter in the path. */
function routeOf(path: string): { readonly route: string; readonly name: string } {
  const [first = '', name, ...rest] = path.split('/');
  return name === undefined ? { route: first, name: '' } : { route: [first, '*', ...rest].join('/'), name };
}

function handlerOf(route: string, method: string): Handler {
  const methods = Object.hasOwn(ROUTES, route) ? ROUTES[route] : undefined;
  if (!methods) throw new ApiError('not_found', 'There is no such path below /api/.');
  const handler = Object.hasOwn(methods, method) ? methods[method] : undefined;
  if (handler) return handler;
  const allow = Object.keys(methods).join(', ');
  throw new ApiError('method_not_allowed', `Expected ${allow}.`, allow);
}

/** Answers a request below `/api/` whose token was checked. @throws ApiError if the request is refused */
export async function answerApi(
  request: IncomingMessage,
  response: ServerResponse,
  url: URL,
  parts: ApiParts,
): Promise<void> {
  const { route, name } = routeOf(url.pathname.slice('/api/'.length));
  const handler = handlerOf(route, request.method ?? '');
  const body: Call['body'] = (most = MOST_BODY) => readJsonBody(request, most);
  const answer = await handler({ request, response, query: url.searchParams, name, body }, parts);
  if (answer !== undefined) sendJson(response, 200, answer);
}
