import nodeDns from 'node:dns';
import { afterEach, beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { createSessions, hostsOf, reachOf } from '../../src/for-tests.ts';
import { ConfigError } from '../../src/index.ts';
import { a2aCaller } from '../../src/registrations/a2a.ts';
import { type CallerOptions, mcpCaller } from '../../src/registrations/mcp.ts';
import { type CallSeller, createRegistrations } from '../../src/registrations/index.ts';
import { memoryStore } from '../../src/stores/memory.ts';
import { type Listening, listening } from '../adapters/raw-client.ts';
import { testReceiver } from '../receiver/setup.ts';
import { NEWEST } from '../registrations/kit.ts';
import { type DnsAnswer, type DnsServer, startDnsServer } from '../support/dns-server.ts';
import {
  answerText,
  ask,
  callsIn,
  DONE,
  hostileSeller,
  type HostileSeller,
  sayResult,
} from './hostile-seller.ts';
import { anyClient, pollerBy } from '../support/any-client.ts';

const CALLERS = ['mcpCaller', 'a2aCaller'] as const;
const AUTH = { type: 'bearer', token: 's3cret' } as const;

let seller: HostileSeller;
/** Another origin, which nobody is to call. */
let other: Listening;
let reached: (string | undefined)[];
beforeEach(async () => {
  seller = await hostileSeller();
  reached = [];
  other = await listening((req, res) => {
    reached.push(req.headers.authorization ?? 'without a token');
    res.writeHead(200, { 'content-type': 'application/json' }).end('{}');
  });
});
afterEach(async () => {
  await seller[Symbol.asyncDispose]();
  await other[Symbol.asyncDispose]();
});

/** Redirects whatever comes to a path. */
function redirectFrom(path: string, status: number, location: string | undefined): void {
  seller.instead = (heard, res) => {
    if (heard.path !== path) return false;
    res.writeHead(status, location === undefined ? {} : { location }).end();
    return true;
  };
}

/** A name server that whoever resolves names in this test asks in the place of the system's. */
async function nameServer(zone: Readonly<Record<string, DnsAnswer>>): Promise<DnsServer> {
  const dns = await startDnsServer(new Map(Object.entries(zone)));
  const { Resolver } = nodeDns.promises;
  const value = class extends Resolver {
    constructor(...options: ConstructorParameters<typeof Resolver>) {
      super(...options);
      this.setServers([dns.server]);
    }
  };
  Object.defineProperty(nodeDns.promises, 'Resolver', { value, configurable: true, writable: true });
  onTestFinished(() => void Object.assign(nodeDns.promises, { Resolver }));
  return dns;
}

describe.each(CALLERS)('names that %s looks up', (name) => {
  it.each<readonly [string, DnsAnswer]>([
    ['a private network', { ipv4: ['10.1.2.3'] }],
    ['this machine', { ipv4: ['127.0.0.1'], ipv6: ['::1'] }],
    ['a private network too', { ipv4: ['203.0.113.7', '192.168.1.1'] }],
    ['a host of the local link', { ipv6: ['fe80::1'] }],
  ])('and that lead to %s are not called, and the error says what to do', async (_what, answer) => {
    const dns = await nameServer({ 'seller.example': answer });
    const asking = ask(name, 'https://seller.example/mcp', { allowLoopback: false, auth: AUTH });
    await expect(asking).rejects.toThrow(
      /which is not public \(.*\)\. A host of your own network has to be named: allowHosts: \['seller\.example'\]/,
    );
    expect(dns.names()).toEqual(['seller.example']);
  });
});

describe.each(CALLERS)('redirects of %s', (name) => {
  it.each([307, 308])(
    '%i within the origin is followed with method and body, and remembered',
    async (status) => {
      redirectFrom('/mcp', status, '/mcp/');
      await ask(name, seller.url, { auth: AUTH });
      const posted = callsIn(seller);
      expect(posted.at(-1)).toMatchObject({ method: 'POST', path: '/mcp/' });
      expect(posted.at(-1)?.headers.authorization).toBe('Bearer s3cret');
      // Of a session's three requests and its end the first one alone is redirected.
      const asked = seller.heard.filter(({ path }) => path === '/mcp');
      expect(asked).toHaveLength(1);
    },
  );

  it.each<readonly [string, number, string | undefined]>([
    ['301', 301, '/mcp/'],
    ['302', 302, '/mcp/'],
    ['303', 303, '/mcp/'],
    ['300', 300, '/mcp/'],
    ['307 to itself', 307, '/mcp'],
    ['308 to another scheme', 308, 'ftp://127.0.0.1/mcp'],
    ['307 to user information', 307, 'http://a:b@127.0.0.1/mcp'],
    ['308 to nowhere', 308, undefined],
    ['307 to no URL', 307, 'http://[/'],
  ])('%s is an error', async (_what, status, location) => {
    redirectFrom('/mcp', status, location);
    await expect(ask(name, seller.url, { auth: AUTH })).rejects.toThrow(
      /answers HTTP 30\d, a redirect to .*, which is not followed\. .* give it as agentUrl/,
    );
    expect(callsIn(seller).length).toBeLessThanOrEqual(2);
  });

  it.each([307, 308, 302])(
    '%i to another origin is an error that names it, and nothing goes there',
    async (status) => {
      redirectFrom('/mcp', status, `${other.url}/inner?token=1#x`);
      await expect(ask(name, seller.url, { auth: AUTH })).rejects.toThrow(
        `a redirect to ${other.url}/inner, which is not followed`,
      );
      expect(reached).toEqual([]);
    },
  );

  it('a second one is an error', async () => {
    seller.instead = ({ path }, res) => {
      res.writeHead(307, { location: path === '/mcp' ? '/a' : '/b' }).end();
      return true;
    };
    await expect(ask(name, seller.url)).rejects.toThrow(
      /\/a answers HTTP 307, a redirect to .*\/b, which is not/,
    );
    expect(seller.heard.map(({ path }) => path)).toEqual(['/mcp', '/a']);
  });
});

const CARD = (url: string): string =>
  JSON.stringify({ supportedInterfaces: [{ url, protocolBinding: 'JSONRPC', protocolVersion: '1.0' }] });

describe('an agent card', () => {
  const byCard = (options: CallerOptions = {}): Promise<unknown> =>
    a2aCaller({ allowLoopback: true, auth: AUTH, ...options })(
      seller.url,
      'get_products',
      {},
      {
        signal: AbortSignal.timeout(60_000),
      },
    );
  const cardOf = (url: string): void => {
    seller.instead = ({ method }, res) => {
      if (method === 'GET') res.writeHead(200, { 'content-type': 'application/json' }).end(CARD(url));
      return method === 'GET';
    };
  };

  it('that names another origin leads there without the token, and a 401 says why', async () => {
    cardOf(`${other.url}/a2a`);
    await expect(byCard()).rejects.toThrow(/without a JSON-RPC result/);
    expect(reached).toEqual(['without a token']);
    other.server.removeAllListeners('request');
    other.server.on('request', (_req, res) => void res.writeHead(401).end());
    await expect(byCard()).rejects.toThrow(
      `HTTP 401 from ${other.url}/a2a: the token goes only to the origin of agentUrl`,
    );
  });

  it.each([
    'https://10.0.0.1/admin',
    'https://metadata.internal/',
    'http://seller.example/',
    'https://[fd00::1]/',
  ])('that names %s leads nowhere', async (url) => {
    cardOf(url);
    await expect(byCard()).rejects.toThrow(/names no https URL/);
    expect(callsIn(seller)).toEqual([]);
  });

  it('in whose place is a redirect is not there', async () => {
    seller.instead = ({ path, method }, res) => {
      if (path === '/mcp/.well-known/agent-card.json')
        res.writeHead(302, { location: `${other.url}/login` }).end();
      else if (method === 'GET')
        res.writeHead(200, { 'content-type': 'application/json' }).end(CARD(seller.url));
      else return false;
      return true;
    };
    await byCard();
    expect(reached).toEqual([]);
    expect(callsIn(seller)).toHaveLength(1);
  });
});

describe('which URLs are called', () => {
  const strict = reachOf({ allowLoopback: false, allowHosts: new Set(), dns: 'direct' });
  const loose = reachOf({
    allowLoopback: true,
    allowHosts: hostsOf('x', ['seller.corp', '10.1.2.3']),
    dns: 'direct',
  });

  it.each([
    ['http://seller.example/', /not https/],
    ['https://127.0.0.1/admin', /refused: .*allowLoopback/],
    ['https://localhost/', /refused: .*allowLoopback/],
    ['https://2130706433/', /refused/],
    ['https://10.1.2.3/', /refused: .*allowHosts: \['10\.1\.2\.3'\]/],
    ['https://169.254.169.254/', /refused/],
    ['https://seller.corp.internal/', /refused/],
    ['https://[::1]/', /refused/],
    ['https://u:p@seller.example/', /user information/],
    ['ftp://seller.example/', /not an https URL/],
    ['/mcp', /not an absolute URL/],
  ])('%s is not', (url, message) => {
    expect(strict.refusedReason(url, url)).toMatch(message);
  });

  it('https of a public name is; allowLoopback opens this machine alone, allowHosts those that it names', () => {
    expect(strict.refusedReason('https://seller.example/mcp', 'https://seller.example/mcp')).toBeUndefined();
    for (const url of ['http://127.0.0.1:1/', 'http://localhost/', 'https://[::1]/', 'http://a.localhost/']) {
      expect(loose.refusedReason(url, url), url).toBeUndefined();
    }
    for (const url of [
      'https://seller.corp/',
      'https://SELLER.corp./',
      'http://10.1.2.3/',
      'https://seller.example/',
    ]) {
      expect(loose.refusedReason(url, url), url).toBeUndefined();
    }
    for (const url of ['http://seller.example/', 'https://10.1.2.4/', 'https://x.seller.corp.internal/']) {
      expect(loose.refusedReason(url, url), url).toBeDefined();
    }
    const named = reachOf({ allowLoopback: false, allowHosts: new Set(['seller.corp']), dns: 'direct' });
    expect(named.refusedReason('https://seller.corp/', 'https://seller.corp/')).toBeUndefined();
    expect(named.refusedReason('http://seller.corp/', 'http://seller.corp/')).toMatch(/not https/);
  });

  it('a document of a seller elsewhere opens no host, and says how it may', () => {
    const card = 'https://seller.example/.well-known/agent-card.json';
    for (const url of [
      'https://seller.corp/admin',
      'http://10.1.2.3/',
      'http://127.0.0.1:1/',
      'https://a.localhost/',
    ]) {
      expect(loose.refusedReason(url, card), url).toMatch(/^refused: .*allowHosts: \['seller\.example'\]$/);
      expect(loose.refusedReason(url, 'http://localhost:3000/x'), url).toBeUndefined();
      expect(loose.refusedReason(url, 'https://SELLER.corp./x'), url).toBeUndefined();
    }
    expect(loose.refusedReason('https://agents.example/', card)).toBeUndefined();
  });

  it.each([['https://seller.corp'], ['seller.corp/x'], ['seller.corp:1'], ['*'], [''], [7]])(
    'allowHosts: %j is no host',
    (host) => {
      expect(() => mcpCaller({ allowHosts: [host as string] })).toThrow(ConfigError);
      expect(() => mcpCaller({ allowHosts: [host as string] })).toThrow(/allowHosts: give host names alone/);
    },
  );

  it('a name that resolves to an address of a private network is not connected to, and the error says what to do', async () => {
    const resolving = reachOf({ allowLoopback: false, allowHosts: new Set(), dns: 'system' });
    const init = {
      method: 'GET',
      headers: {},
      redirect: 'manual',
      signal: AbortSignal.timeout(60_000),
    } as const;
    // A literal takes the way of a resolved name.
    await expect(resolving.transport('https://10.0.0.1/', init)).rejects.toThrow(/not a public host/);
  });

  it('an owner’s fetch is called with what is sent, and decides where that goes', async () => {
    const seen: (readonly [string, RequestInit])[] = [];
    const own = async (url: string, init: RequestInit): Promise<Response> => {
      seen.push([url, init]);
      return globalThis.fetch(url.replace('https://seller.example/mcp', seller.url), init);
    };
    const options = { fetch: own, allowLoopback: false, auth: AUTH };
    expect(await ask('mcpCaller', 'https://seller.example/mcp', options)).toMatchObject({ n: 1 });
    expect(
      seen.every(([url, { redirect }]) => url === 'https://seller.example/mcp' && redirect === 'manual'),
    ).toBe(true);
    expect(callsIn(seller)[0]?.headers.authorization).toBe('Bearer s3cret');
    const following = async (url: string, init: RequestInit): Promise<Response> =>
      own(url, { ...init, redirect: 'follow' });
    redirectFrom('/mcp', 307, '/mcp/');
    await expect(
      ask('mcpCaller', 'https://seller.example/mcp', { ...options, fetch: following }),
    ).rejects.toThrow(/was redirected by your fetch/);
    expect(() => mcpCaller({ fetch: 'x' as never })).toThrow(/fetch: is not a function/);
  });

  it.each(['mcpCaller', 'a2aCaller'] as const)(
    'once an owner’s fetch has rejected its signal fires no more (%s): for Node’s own that can be the end of the process',
    async (name) => {
      seller.instead = (_heard, res) => {
        res.writeHead(200, { 'content-encoding': Array.from({ length: 20 }, () => 'gzip').join() }).end('x');
        return true;
      };
      const signals: (AbortSignal | null | undefined)[] = [];
      const own = async (url: string, init: RequestInit): Promise<Response> => {
        signals.push(init.signal);
        return globalThis.fetch(url, init);
      };
      const stopping = new AbortController();
      await expect(ask(name, seller.url, { fetch: own, signal: stopping.signal })).rejects.toThrow(
        /fetch failed/,
      );
      stopping.abort(new Error('the caller stops'));
      expect(signals.map((signal) => signal?.aborted)).toEqual([false]);
    },
  );
});

describe('sessions of mcpCaller', () => {
  const count = (method: string): number => seller.heard.filter((heard) => heard.method === method).length;
  const opened = (): number => seller.heard.filter(({ message }) => message?.method === 'initialize').length;

  it('ten calls leave none open, and no stream is asked for', async () => {
    for (let call = 0; call < 10; call += 1) await ask('mcpCaller', seller.url, { auth: AUTH });
    await expect.poll(() => count('DELETE')).toBe(10);
    const ends = seller.heard.filter(({ method }) => method === 'DELETE');
    expect(ends.every(({ headers }) => headers['mcp-session-id'] === 'session-1')).toBe(true);
    expect(ends.every(({ headers }) => headers.authorization === 'Bearer s3cret')).toBe(true);
    expect([opened(), count('GET')]).toEqual([10, 0]);
  });

  it('one of a call that fails is ended too, and a seller without sessions is asked for none', async () => {
    seller.say = (_heard, res) => void res.writeHead(500).end();
    await expect(ask('mcpCaller', seller.url)).rejects.toThrow();
    await expect.poll(() => count('DELETE')).toBe(1);
    await seller[Symbol.asyncDispose]();
    seller = await hostileSeller('');
    await ask('mcpCaller', seller.url);
    expect(count('DELETE')).toBe(0);
  });

  it('are one a seller and token for who keeps them, with ids of their own for calls at once', async () => {
    const timers: (() => void)[] = [];
    const sessions = createSessions((task) => {
      timers.push(task);
      return () => undefined;
    });
    const call = mcpCaller({ allowLoopback: true, auth: AUTH });
    const asking = (): Promise<unknown> =>
      call(seller.url, 'get_products', {}, { signal: AbortSignal.timeout(60_000), sessions });
    await Promise.all([asking(), asking(), asking()]);
    await asking();
    expect([opened(), callsIn(seller).length, count('DELETE')]).toEqual([1, 4, 0]);
    expect(new Set(callsIn(seller).map(({ message }) => message?.id)).size).toBe(4);
    // Idle: it ends, and the next call opens another one.
    timers.at(-1)?.();
    await expect.poll(() => count('DELETE')).toBe(1);
    await asking();
    expect(opened()).toBe(2);
    await sessions.end();
    expect(count('DELETE')).toBe(2);
  });

  it('that the seller does not know any more are opened anew, once', async () => {
    const sessions = createSessions(() => () => undefined);
    const call = mcpCaller({ allowLoopback: true });
    const asking = (): Promise<unknown> =>
      call(seller.url, 'get_products', {}, { signal: AbortSignal.timeout(60_000), sessions });
    await asking();
    let lost = 1;
    seller.say = (heard, res) => {
      if (lost > 0) res.writeHead(404).end();
      else sayResult(DONE)(heard, res);
      lost -= 1;
    };
    expect(await asking()).toMatchObject({ n: 1 });
    expect(opened()).toBe(2);
    lost = 9;
    await expect(asking()).rejects.toThrow(/does not know the session/);
    expect(opened()).toBe(3);
    await sessions.end();
  });

  it('a stream that breaks off is gone on with behind its last event, after a second at least', async () => {
    let resumed: string | string[] | undefined;
    let asked: string | undefined;
    seller.say = (heard, res) => {
      res.writeHead(200, { 'content-type': 'text/event-stream' });
      if (heard.method === 'GET') {
        resumed = heard.headers['last-event-id'];
        res.end(`id: e-8\ndata: ${asked}\n\n`);
        return;
      }
      asked = answerText(heard, DONE);
      res.end('id: e-7\nretry: 1\ndata:\n\n');
    };
    const before = performance.now();
    expect(await ask('mcpCaller', seller.url)).toMatchObject({ n: 1 });
    expect(resumed).toBe('e-7');
    expect(performance.now() - before).toBeGreaterThan(990);
  });
});

it('a poller asks all of its questions in one session, also through a caller that chooses, and ends it', async () => {
  const store = memoryStore();
  const registrations = createRegistrations({
    call: anyClient,
    store,
    baseUrl: 'https://buyer.example',
    secrets: [NEWEST],
    allowLoopback: true,
  });
  const { receiver } = await testReceiver({ store, registrations, allowLoopback: true });
  const over = { tool: mcpCaller({ allowLoopback: true }), agent: a2aCaller({ allowLoopback: true }) };
  const call: CallSeller = (agentUrl, ...rest) =>
    over[agentUrl.endsWith('mcp') ? 'tool' : 'agent'](agentUrl, ...rest);
  const poller = pollerBy({ receiver, registrations, call, fastMs: 1 });
  seller.say = (heard, res) => {
    const { arguments: args } = (heard.message?.params ?? {}) as {
      readonly arguments: { readonly task_id: string };
    };
    sayResult(
      JSON.stringify({ structuredContent: { task_id: args.task_id, status: 'working' }, content: [] }),
    )(heard, res);
  };
  for (let task = 0; task < 6; task += 1) {
    const made = await registrations.create({
      agentUrl: seller.url,
      taskType: 'get_products',
      arguments: {},
    });
    await made.settle({ status: 'working', task_id: `task-${task}` });
  }
  await poller.start();
  await expect.poll(() => callsIn(seller).length).toBeGreaterThan(12);
  await poller.stop();
  await receiver.stop();
  const by = (method: string): number =>
    seller.heard.filter(({ message }) => message?.method === method).length;
  expect([by('initialize'), by('notifications/initialized')]).toEqual([1, 1]);
  expect(seller.heard.filter(({ method }) => method === 'DELETE')).toHaveLength(1);
  expect(new Set(callsIn(seller).map(({ message }) => message?.id)).size).toBe(callsIn(seller).length);
});
