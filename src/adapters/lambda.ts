// Serves a receiver in an AWS Lambda function, for all forms of HTTP events: the entry `proto-webhooks/lambda`. Called
// by buyers. Lambda delivers each request whole, so the body is passed to the receiver in one call
// (docs/frameworks.md).

import { Buffer } from 'node:buffer';
import type { HeadersInput } from '../shared/delivery.ts';
import type { RequestInfo } from '../config/receiver-options.ts';
import type { Reply } from '../shared/outcome.ts';
import {
  type Answered,
  type AdapterReceiver,
  faultReply,
  isTicket,
  noRequest,
  wiringOf,
} from './shared-adapter.ts';

/**
 * An HTTP event of AWS Lambda, in all its forms, reduced to the parts that `webhookHandler` uses. Members may be
 * `undefined`, as in `@types/aws-lambda`.
 */
export interface LambdaEvent {
  /** The version of the payload. `2.0` is used by HTTP APIs and function URLs. */
  readonly version?: string | undefined;
  readonly httpMethod?: string | undefined;
  readonly path?: string | undefined;
  readonly rawPath?: string | undefined;
  readonly rawQueryString?: string | undefined;
  readonly headers?: Readonly<Record<string, string | undefined>> | null | undefined;
  readonly multiValueHeaders?: Readonly<Record<string, readonly string[] | undefined>> | null | undefined;
  readonly queryStringParameters?: Readonly<Record<string, string | undefined>> | null | undefined;
  readonly multiValueQueryStringParameters?:
    Readonly<Record<string, readonly string[] | undefined>> | null | undefined;
  readonly requestContext?:
    | {
        /** Present for an Application Load Balancer. */
        readonly elb?: unknown;
        /** The method, in payload 2.0. */
        readonly http?: { readonly method: string } | undefined;
        /** The path, in payload 1.0. On the default domain, the path begins with the API's stage. */
        readonly path?: string | undefined;
      }
    | undefined;
  readonly body?: string | null | undefined;
  readonly isBase64Encoded?: boolean | undefined;
}

/** The value that the Lambda handler returns, from which AWS makes the HTTP answer. */
export interface LambdaResult {
  readonly statusCode: number;
  readonly headers?: Record<string, string>;
  /**
   * The header fields with lists of values. A load balancer reads either this member or `headers`, depending on its
   * setting for multi-value headers.
   */
  readonly multiValueHeaders?: Record<string, string[]>;
  readonly body: string;
  readonly isBase64Encoded: false;
}

type Pairs = readonly (readonly [string, string])[];

/**
 * The format in which one AWS service (e.g. a load balancer) writes requests for the function and reads its answers.
 */
interface EventShape {
  readonly fits: (event: LambdaEvent) => boolean;
  readonly method: (event: LambdaEvent) => string;
  readonly target: (event: LambdaEvent) => string;
  readonly headers: (event: LambdaEvent) => Pairs;
  readonly result: (reply: Reply, event: LambdaEvent) => LambdaResult;
}

function pairs(single: LambdaEvent['headers'], multi: LambdaEvent['multiValueHeaders']): Pairs {
  const many = Object.entries(multi ?? {}).flatMap(([name, values]) =>
    (values ?? []).map((value) => [name, value] as const),
  );
  if (many.length > 0) return many;
  return Object.entries(single ?? {}).flatMap(([name, value]) =>
    value === undefined ? [] : [[name, value] as const],
  );
}

const lines = (event: LambdaEvent): Pairs => pairs(event.headers, event.multiValueHeaders);

const parameters = (event: LambdaEvent): Pairs =>
  pairs(event.queryStringParameters, event.multiValueQueryStringParameters);

const withQuery = (path: string, query: string): string => (query === '' ? path : `${path}?${query}`);

const joined = (all: Pairs, spell: (part: string) => string): string =>
  all.map(([name, value]) => `${spell(name)}=${spell(value)}`).join('&');

const asIs = (part: string): string => part;

const single = ({ status, headers, body }: Reply): LambdaResult => ({
  statusCode: status,
  headers: { ...headers },
  body,
  isBase64Encoded: false,
});

/** Makes the answer in the form that the load balancer is configured to read: single headers or lists. */
function balanced(reply: Reply, event: LambdaEvent): LambdaResult {
  if (!event.multiValueHeaders) return single(reply);
  const { headers, ...rest } = single(reply);
  const many: Record<string, string[]> = {};
  for (const [name, value] of Object.entries(headers ?? {})) many[name] = [value];
  return { ...rest, multiValueHeaders: many };
}

/** The format of HTTP APIs and function URLs (payload 2.0). Repeated header lines arrive joined with commas. */
const PAYLOAD_2: EventShape = {
  fits: (event) => event.requestContext?.http !== undefined,
  method: (event) => event.requestContext?.http?.method ?? '',
  target: (event) => withQuery(event.rawPath ?? '/', event.rawQueryString ?? ''),
  headers: (event) => pairs(event.headers, undefined),
  result: single,
};

/** The format of an Application Load Balancer. Query parameters arrive as they were sent, not decoded. */
const LOAD_BALANCER: EventShape = {
  fits: (event) => event.requestContext?.elb !== undefined,
  method: (event) => event.httpMethod ?? '',
  target: (event) => withQuery(event.path ?? '/', joined(parameters(event), asIs)),
  headers: lines,
  result: balanced,
};

/** The format of REST APIs, and of HTTP APIs with payload 1.0. Query parameters arrive decoded. */
const PAYLOAD_1: EventShape = {
  fits: () => true,
  method: (event) => event.httpMethod ?? '',
  target: (event) =>
    withQuery(event.requestContext?.path ?? event.path ?? '/', joined(parameters(event), encodeURIComponent)),
  headers: lines,
  result: single,
};

/** Returns the first format that fits the event. Payload 1.0 is last, because it fits any event. */
function eventShape(event: LambdaEvent): EventShape {
  return [PAYLOAD_2, LOAD_BALANCER].find((shape) => shape.fits(event)) ?? PAYLOAD_1;
}

export type { AdapterReceiver } from './shared-adapter.ts';

/** True if code before the handler has parsed the body, so that it is no string any more. */
const isParsed = ({ body }: { readonly body?: unknown }): boolean => body != null && typeof body !== 'string';

const PARSED =
  'event.body is not the text that API Gateway gives: it was parsed before the webhook handler, and the bytes that were signed are gone. Take middleware that parses bodies (e.g. middy’s httpJsonBodyParser) off this function.';

function bodyOf({ body, isBase64Encoded }: LambdaEvent): Uint8Array {
  return Buffer.from(body ?? '', isBase64Encoded === true ? 'base64' : 'utf8');
}

/**
 * Answers a delivery whose body was parsed: the headers are checked first, then the answer is 503
 * `body_consumed`.
 */
async function refuseParsed(
  receiver: AdapterReceiver,
  headers: HeadersInput,
  info: RequestInfo,
): Promise<Answered> {
  const opened = await receiver.open(headers, info);
  if (!isTicket(opened)) return opened;
  opened.abort();
  return receiver.door.consumed(PARSED);
}

async function answer(
  receiver: AdapterReceiver,
  received: LambdaEvent | null | undefined,
): Promise<LambdaResult> {
  const event = received ?? {};
  const shape = eventShape(event);
  try {
    const method: unknown = shape.method(event);
    // Without a method the receiver would answer 405, which is final for the sender. But an event that cannot be read
    // is not the sender's fault.
    if (typeof method !== 'string' || method === '') throw noRequest('lambda');
    const headers = shape.headers(event);
    const info = { method, url: shape.target(event), urlNormalised: shape === PAYLOAD_1 };
    const { response } = isParsed(event)
      ? await refuseParsed(receiver, headers, info)
      : await receiver.verifyAndDispatch(bodyOf(event), headers, info);
    return shape.result(response, event);
  } catch (error) {
    return shape.result(faultReply(receiver, error), event);
  }
}

/**
 * Creates an AWS Lambda handler that serves a receiver. In front of it is an API Gateway (REST, payload 1.0;
 * HTTP, payload 2.0), an Application Load Balancer or a function URL.
 *
 * Mode `inline`: give the function a time-out above `handlerDeadlineMs` + `waitMs` (Lambda's default is 3 s).
 * Mode `inbox`: the function only stores events. Call `receiver.start()` in a process that keeps running, never in the
 * function. AWS freezes a function between requests: its leases would expire, and other processes would run its events
 * too.
 *
 * REST APIs and load balancers pass a parsed query. If `publicUrl` ends in `/*`, the handler rebuilds the
 * query, so give sellers URLs without a query or with a plain one like `?id=7`. Deliveries to other
 * spellings, e.g. `?q=a+b`, may be answered with 401, or with 503 and the alarm `public_url_mismatch`.
 * @throws ConfigError (rejects), from the handler, if the first event is not an HTTP request. Later ones are
 *   answered with 503.
 * @example
 * ```ts
 * import type { Receiver } from 'proto-webhooks';
 * import { type LambdaEvent, type LambdaResult, webhookHandler } from 'proto-webhooks/lambda';
 *
 * export function handlerOf(receiver: Receiver): (event: LambdaEvent) => Promise<LambdaResult> {
 *   return webhookHandler(receiver);
 * }
 * ```
 */
export function webhookHandler(receiver: AdapterReceiver): (event: LambdaEvent) => Promise<LambdaResult> {
  const check = wiringOf('lambda', receiver);
  return async (event) => {
    check(event);
    return answer(receiver, event);
  };
}
