// What API Gateway, a load balancer or a function URL does, on this machine: it makes an event of each HTTP request,
// calls the bundle, and answers what it returns. For trying the function out; nothing of it is deployed.
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { ALBEvent, APIGatewayProxyEvent, APIGatewayProxyEventV2 } from 'aws-lambda';

type Handler = typeof import('./handler.ts').handler;
type Front = 'rest-api' | 'http-api' | 'function-url' | 'load-balancer';

const { PORT = '3000', FRONT = 'http-api' } = process.env;
const bundle = './dist/index.cjs';
const { handler } = (await import(bundle)) as { handler: Handler };

interface Received {
  readonly method: string;
  readonly path: string;
  readonly query: string;
  /** By lower-case name, repeated lines joined. */
  readonly headers: Record<string, string>;
  readonly lines: Record<string, string[]>;
  readonly body: Buffer;
}

function restApi({ method, path, headers, lines, body }: Received): APIGatewayProxyEvent {
  return {
    resource: '/{proxy+}',
    path,
    httpMethod: method,
    headers,
    multiValueHeaders: lines,
    queryStringParameters: null,
    multiValueQueryStringParameters: null,
    pathParameters: { proxy: path.slice(1) },
    stageVariables: null,
    requestContext: {
      accountId: '123456789012',
      apiId: 'abc123',
      authorizer: null,
      protocol: 'HTTP/1.1',
      httpMethod: method,
      path,
      stage: 'prod',
      requestId: 'b1',
      requestTimeEpoch: Date.now(),
      resourceId: 'r1',
      resourcePath: '/{proxy+}',
      identity: {
        accessKey: null,
        accountId: null,
        apiKey: null,
        apiKeyId: null,
        caller: null,
        clientCert: null,
        cognitoAuthenticationProvider: null,
        cognitoAuthenticationType: null,
        cognitoIdentityId: null,
        cognitoIdentityPoolId: null,
        principalOrgId: null,
        sourceIp: '127.0.0.1',
        user: null,
        userAgent: null,
        userArn: null,
      },
    },
    body: body.toString(),
    isBase64Encoded: false,
  };
}

/** Payload 2.0: HTTP APIs and function URLs differ in names and in what they send as base64. */
function payload2(isBase64Encoded: boolean): (received: Received) => APIGatewayProxyEventV2 {
  return ({ method, path, query, headers, body }) => ({
    version: '2.0',
    routeKey: '$default',
    rawPath: path,
    rawQueryString: query,
    headers,
    requestContext: {
      accountId: '123456789012',
      apiId: 'abc123',
      domainName: headers['host'] ?? '',
      domainPrefix: 'abc123',
      http: { method, path, protocol: 'HTTP/1.1', sourceIp: '127.0.0.1', userAgent: '' },
      requestId: 'b1',
      routeKey: '$default',
      stage: '$default',
      time: new Date().toISOString(),
      timeEpoch: Date.now(),
    },
    body: body.toString(isBase64Encoded ? 'base64' : 'utf8'),
    isBase64Encoded,
  });
}

function loadBalancer({ method, path, headers, body }: Received): ALBEvent {
  return {
    requestContext: { elb: { targetGroupArn: 'arn:aws:elasticloadbalancing:eu-1:1:targetgroup/w/1' } },
    httpMethod: method,
    path,
    queryStringParameters: {},
    headers,
    body: body.toString('base64'),
    isBase64Encoded: true,
  };
}

const FRONTS = {
  'rest-api': restApi,
  'http-api': payload2(false),
  'function-url': payload2(true),
  'load-balancer': loadBalancer,
} satisfies Record<Front, (received: Received) => object>;

async function received(req: IncomingMessage): Promise<Received> {
  const chunks: Buffer[] = [];
  for await (const chunk of req) chunks.push(chunk as Buffer);
  const [path = '/', query = ''] = (req.url ?? '/').split('?');
  const lines: Record<string, string[]> = {};
  for (const [name, values] of Object.entries(req.headersDistinct)) lines[name] = values ?? [];
  const headers = Object.fromEntries(Object.entries(lines).map(([name, all]) => [name, all.join(',')]));
  return { method: req.method ?? '', path, query, headers, lines, body: Buffer.concat(chunks) };
}

async function answer(req: IncomingMessage, res: ServerResponse): Promise<void> {
  const event = FRONTS[FRONT as Front](await received(req));
  const { statusCode, headers, body } = await handler(event);
  res.writeHead(statusCode, headers).end(body);
}

createServer((req, res) => void answer(req, res)).listen(Number(PORT), '127.0.0.1');
