import {
  type AdapterReceiver,
  type LambdaEvent,
  type LambdaResult,
  webhookHandler,
} from '../../../src/adapters/lambda.ts';
import type { DoorHarness } from './serving.ts';
import { answerOf, type WireAnswer, type WireRequest } from './wire.ts';

/** How a front of Lambda's makes an event of a request, and an answer of a result. */
interface Front {
  readonly name: string;
  readonly lacks: DoorHarness['lacks'];
  readonly event: (request: WireRequest) => LambdaEvent;
  readonly read: (result: LambdaResult) => Iterable<readonly [string, string]>;
}

const WHOLE = {
  authority: 'the event has Host alone',
  'absolute-form': 'the event has a path',
  'empty query': 'it leaves no trace in the event',
  length: 'the front writes it',
  streams: 'the event has the whole body',
  closes: 'the front owns the connection',
} as const;

const MAP = 'the event has the query as a map';

type Grouped = Record<string, string[]>;

/** Lambda's fronts send lower-case names, but for REST APIs, which keep the sender's. */
function grouped(pairs: Iterable<readonly [string, string]>): Grouped {
  const groups: Grouped = {};
  for (const [name, value] of pairs) (groups[name] ??= []).push(value);
  return groups;
}

const mapped = (groups: Grouped, pick: (values: readonly string[]) => string): Record<string, string> =>
  Object.fromEntries(Object.entries(groups).map(([name, values]) => [name, pick(values)]));

const last = (values: readonly string[]): string => values.at(-1) ?? '';
const commas = (values: readonly string[]): string => values.join(',');

const lowered = ({ headers }: WireRequest): [string, string][] =>
  headers.map(([name, value]) => [name.toLowerCase(), value]);

function split(target: string): { path: string; query: string } {
  const at = target.indexOf('?');
  return at < 0 ? { path: target, query: '' } : { path: target.slice(0, at), query: target.slice(at + 1) };
}

const queryPairs = (query: string): [string, string][] =>
  query === '' ? [] : query.split('&').map((part) => part.split('=', 2) as [string, string]);

const bytes = (body: Uint8Array): Pick<LambdaEvent, 'body' | 'isBase64Encoded'> =>
  body.byteLength === 0
    ? { body: null, isBase64Encoded: false }
    : { body: Buffer.from(body).toString('base64'), isBase64Encoded: true };

const text = (body: Uint8Array): Pick<LambdaEvent, 'body' | 'isBase64Encoded'> => ({
  body: Buffer.from(body).toString(),
  isBase64Encoded: false,
});

const oneEach = (result: LambdaResult): Iterable<readonly [string, string]> =>
  Object.entries(result.headers ?? {});

const many = (result: LambdaResult): Iterable<readonly [string, string]> =>
  Object.entries(result.multiValueHeaders ?? {}).flatMap(([name, values]) =>
    values.map((value): [string, string] => [name, value]),
  );

const loadBalancer = { elb: { targetGroupArn: 'arn:aws:elasticloadbalancing:region:1:targetgroup/a/b' } };

const FRONTS: readonly Front[] = [
  {
    name: 'lambda, REST API (payload 1.0)',
    lacks: { ...WHOLE, 'exact query': `${MAP}, decoded` },
    event: (request) => {
      const { path, query } = split(request.target);
      const headers = grouped(request.headers);
      const decoded = queryPairs(query).map(([name, value]): [string, string] => [
        name,
        decodeURIComponent(value),
      ]);
      const values = grouped(decoded);
      return {
        httpMethod: request.method,
        path,
        headers: mapped(headers, last),
        multiValueHeaders: headers,
        queryStringParameters: query === '' ? null : mapped(values, last),
        multiValueQueryStringParameters: query === '' ? null : values,
        requestContext: { path },
        ...text(request.body),
      };
    },
    read: oneEach,
  },
  ...(['HTTP API', 'function URL'] as const).map((name): Front => ({
    name: `lambda, ${name} (payload 2.0)`,
    lacks: WHOLE,
    event: (request) => {
      const { path, query } = split(request.target);
      return {
        version: '2.0',
        rawPath: path,
        rawQueryString: query,
        headers: mapped(grouped(lowered(request)), commas),
        requestContext: { http: { method: request.method } },
        ...(name === 'HTTP API' ? text(request.body) : bytes(request.body)),
      };
    },
    read: oneEach,
  })),
  {
    name: 'lambda, load balancer',
    lacks: {
      ...WHOLE,
      'exact query': MAP,
      'repeated lines': 'without multi-value headers the last line is all there is',
    },
    event: (request) => {
      const { path, query } = split(request.target);
      return {
        httpMethod: request.method,
        path,
        headers: mapped(grouped(lowered(request)), last),
        queryStringParameters: mapped(grouped(queryPairs(query)), last),
        requestContext: loadBalancer,
        ...bytes(request.body),
      };
    },
    read: oneEach,
  },
  {
    name: 'lambda, load balancer with multi-value headers',
    lacks: { ...WHOLE, 'exact query': MAP },
    event: (request) => {
      const { path, query } = split(request.target);
      return {
        httpMethod: request.method,
        path,
        multiValueHeaders: grouped(lowered(request)),
        multiValueQueryStringParameters: grouped(queryPairs(query)),
        requestContext: loadBalancer,
        ...bytes(request.body),
      };
    },
    read: many,
  },
];

const answered = (result: LambdaResult, read: Front['read'], method: string): WireAnswer =>
  answerOf(result.statusCode, read(result), method === 'HEAD' ? '' : result.body);

/** Fronts put a `content-length` into the event, where the sender sent one. */
const withLength = (request: WireRequest): WireRequest =>
  request.chunked
    ? request
    : { ...request, headers: [...request.headers, ['Content-Length', String(request.body.byteLength)]] };

/** No server: the event is what Lambda gives. */
export const LAMBDA_DOORS: readonly DoorHarness[] = FRONTS.map(({ name, lacks, event, read }) => ({
  name,
  lacks,
  open: async (receiver: AdapterReceiver) => {
    const handle = webhookHandler(receiver);
    return {
      port: 0,
      // As it crosses from the front to the function.
      ask: async (request) => {
        const crossing = JSON.parse(JSON.stringify(event(withLength(request)))) as LambdaEvent;
        return answered(await handle(crossing), read, request.method);
      },
      [Symbol.asyncDispose]: async () => undefined,
    };
  },
}));
