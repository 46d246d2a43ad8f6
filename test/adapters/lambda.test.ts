import { describe, expect, test } from 'vitest';
import { webhookHandler, type LambdaEvent } from '../../src/adapters/lambda.ts';
import { header, recordingReceiver, text } from './recording-receiver.ts';

/** As API Gateway's documentation shows them, shortened. */
const REST: LambdaEvent = {
  httpMethod: 'POST',
  path: '/proto',
  headers: { 'Content-Type': 'application/json', Signature: 'last' },
  multiValueHeaders: { 'Content-Type': ['application/json'], Signature: ['first', 'last'] },
  queryStringParameters: { b: '2', a: 'x y' },
  multiValueQueryStringParameters: { b: ['1', '2'], a: ['x y'] },
  requestContext: { path: '/stage/proto' },
  body: '{ "a" : "\u00fc" }',
  isBase64Encoded: false,
};

const HTTP: LambdaEvent = {
  version: '2.0',
  rawPath: '/webhooks/a%2fb',
  rawQueryString: 'q=%41&q=',
  headers: { 'content-type': 'application/json', host: 'buyer.example' },
  requestContext: { http: { method: 'POST' } },
  body: Buffer.from([0x7b, 0xff, 0x7d]).toString('base64'),
  isBase64Encoded: true,
};

describe('input', () => {
  test('a REST API: the path with its stage, the query put together again, repeated lines', async () => {
    const receiver = recordingReceiver();
    await webhookHandler(receiver)(REST);
    expect(receiver.handed[0]?.request).toEqual({
      method: 'POST',
      url: '/stage/proto?b=1&b=2&a=x%20y',
      urlNormalised: true,
    });
    expect(receiver.handed[0]?.headers.get('signature')).toEqual(['first', 'last']);
    expect(text(receiver.handed[0])).toBe('{ "a" : "\u00fc" }');
  });

  test('a REST API without multi-value members', async () => {
    const receiver = recordingReceiver();
    await webhookHandler(receiver)({
      ...REST,
      multiValueHeaders: null,
      multiValueQueryStringParameters: null,
      requestContext: {},
    });
    expect(receiver.handed[0]?.request.url).toBe('/proto?b=2&a=x%20y');
    expect(header(receiver.handed[0], 'signature')).toBe('last');
  });

  test('an HTTP API: path and query as received, and the body’s exact bytes', async () => {
    const receiver = recordingReceiver();
    await webhookHandler(receiver)(HTTP);
    expect(receiver.handed[0]?.request.url).toBe('/webhooks/a%2fb?q=%41&q=');
    expect([...(receiver.handed[0]?.rawBody ?? [])]).toEqual([0x7b, 0xff, 0x7d]);
  });

  test('a load balancer: the query as it was sent', async () => {
    const receiver = recordingReceiver();
    await webhookHandler(receiver)({
      httpMethod: 'POST',
      path: '/hook',
      queryStringParameters: { a: 'x%20y' },
      headers: { 'content-type': 'application/json' },
      requestContext: { elb: {} },
      body: null,
      isBase64Encoded: false,
    });
    expect(receiver.handed[0]?.request.url).toBe('/hook?a=x%20y');
    expect(text(receiver.handed[0])).toBe('');
  });
});

describe('output', () => {
  const reply = { status: 401, headers: { 'WWW-Authenticate': 'Signature error="x"' }, body: '\u00fc' };

  test('API Gateway and function URLs: headers, and a body that is text', async () => {
    const handler = webhookHandler(recordingReceiver({ answer: () => reply }));
    const result = {
      statusCode: 401,
      headers: { 'WWW-Authenticate': 'Signature error="x"' },
      body: '\u00fc',
      isBase64Encoded: false,
    };
    expect(await handler(REST)).toEqual(result);
    expect(await handler(HTTP)).toEqual(result);
  });

  test('a load balancer gets the one form that it reads', async () => {
    const handler = webhookHandler(recordingReceiver({ answer: () => reply }));
    const event = { httpMethod: 'POST', path: '/', requestContext: { elb: {} }, body: '{}' };
    const type = 'application/json';
    const single = await handler({ ...event, headers: { 'content-type': type } });
    expect([single.headers, single.multiValueHeaders]).toEqual([
      { 'WWW-Authenticate': 'Signature error="x"' },
      undefined,
    ]);
    const multi = await handler({ ...event, multiValueHeaders: { 'content-type': [type] } });
    expect([multi.headers, multi.multiValueHeaders]).toEqual([
      undefined,
      { 'WWW-Authenticate': ['Signature error="x"'] },
    ]);
  });

  test('a request that headers alone decide is answered without its body', async () => {
    const receiver = recordingReceiver();
    const handler = webhookHandler(receiver);
    expect((await handler({ ...HTTP, headers: {} })).statusCode).toBe(415);
    expect((await handler({ ...REST, httpMethod: 'GET' })).statusCode).toBe(405);
    expect(receiver.handed).toEqual([]);
  });

  test('an exception: 503 and a line in the log, not a failed invocation, which a front answers 502', async () => {
    const receiver = recordingReceiver({ answer: () => Promise.reject(new Error('a bug')) });
    const result = await webhookHandler(receiver)(HTTP);
    expect([result.statusCode, result.headers]).toEqual([503, { 'Retry-After': '7' }]);
    expect(receiver.faults).toHaveLength(1);
  });
});

describe('events that are no HTTP request, or unreadable, are never answered 4xx', () => {
  const handler = async (event: unknown) => {
    const receiver = recordingReceiver();
    const handle = webhookHandler(receiver);
    await handle(HTTP);
    const result = await handle(event as LambdaEvent);
    expect(receiver.handed).toHaveLength(1);
    return { status: result.statusCode, fault: String(receiver.faults[0]) };
  };

  test.each([
    ['a queue', { Records: [] }],
    ['a web socket', { requestContext: { routeKey: '$connect' }, headers: {} }],
    ['an HTTP API without its method', { ...HTTP, requestContext: { http: {} } }],
    ['a REST API without its method', { ...REST, httpMethod: null }],
    ['nothing', null],
  ])('%s, after a correct call: 503, and the log says how it is used', async (_, event) => {
    const { status, fault } = await handler(event);
    expect(status).toBe(503);
    expect(fault).toMatch(/was called with something that is not an HTTP request.*export const handler/);
  });

  test.each([[{ a: 1 }], [7], [false]])(
    'a body that was parsed, %j: 503 body_consumed, and the fix',
    async (body) => {
      const receiver = recordingReceiver();
      const result = await webhookHandler(receiver)({ ...REST, body } as unknown as LambdaEvent);
      expect(result.statusCode).toBe(503);
      expect(receiver.handed).toEqual([]);
      expect(receiver.refused).toMatchObject([
        { code: 'body_consumed', detail: expect.stringMatching(/was parsed before/) as string },
      ]);
    },
  );

  test('the very first event, without a method: 503 too', async () => {
    const receiver = recordingReceiver();
    const result = await webhookHandler(receiver)({ requestContext: {}, headers: {} });
    expect(result.statusCode).toBe(503);
    expect(receiver.faults.map(String)).toEqual([expect.stringContaining('not an HTTP request')]);
  });

  test.each([
    ['a lone surrogate in a query', { ...REST, multiValueQueryStringParameters: { a: ['\ud800'] } }],
    ['multiValueHeaders that hold no lists', { ...REST, multiValueHeaders: { 'content-type': 'text' } }],
  ])('%s: 503', async (_, event) => {
    expect((await handler(event)).status).toBe(503);
  });
});
