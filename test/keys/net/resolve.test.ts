import nodeDns from 'node:dns';
import { describe, expect, test, vi } from 'vitest';
import {
  createSellerQueue,
  directResolve,
  nodeFetch,
  publicAddresses,
  type Resolve,
  systemResolve,
} from '../../../src/keys/for-tests.ts';
import { type DnsAnswer, type DnsServer, SILENT_NAME, startDnsServer } from '../../support/dns-server.ts';
import { OTHER_PUBLIC, PUBLIC, PUBLIC_V6 } from '../../support/network.ts';
import { latch } from '../key-server.ts';
import { PATIENT } from '../setup.ts';
import { called, fetched, HOST, httpsBench, modules, textOf, transportIn } from './bench.ts';

const SELLER = 'https://seller.example/mcp';
const { signal } = new AbortController();
const lookUp = { seller: SELLER, signal };

interface Bench {
  readonly dns: DnsServer;
  readonly resolve: Resolve;
}

async function bench(zone: Readonly<Record<string, DnsAnswer>>, timeoutMs?: number): Promise<Bench> {
  const dns = await startDnsServer(new Map(Object.entries(zone)));
  const options = { servers: [dns.server], ...(timeoutMs !== undefined && { timeoutMs }) };
  return { dns, resolve: directResolve(nodeDns, options) };
}

describe('DNS servers are asked', () => {
  test('for both families: IPv4 first, and every address', async () => {
    const { resolve } = await bench({ [HOST]: { ipv4: [PUBLIC, OTHER_PUBLIC], ipv6: [PUBLIC_V6] } });
    expect((await resolve(HOST, lookUp)).toSorted()).toEqual([PUBLIC, OTHER_PUBLIC, PUBLIC_V6].toSorted());
    expect((await resolve(HOST, lookUp)).at(-1)).toBe(PUBLIC_V6);
  });

  test.each<[string, DnsAnswer, string]>([
    ['IPv4 alone', { ipv4: [PUBLIC] }, PUBLIC],
    ['IPv6 alone', { ipv6: [PUBLIC_V6] }, PUBLIC_V6],
    ['IPv4, and questions for IPv6 are dropped', { ipv4: [PUBLIC], silent: ['AAAA'] }, PUBLIC],
  ])('of a name with %s', async (_what, answer, address) => {
    const { resolve } = await bench({ [HOST]: answer });
    expect(await resolve(HOST, lookUp)).toEqual([address]);
  });

  test.each<[string, DnsAnswer, string]>([
    ['an IPv4 address', { ipv4: [PUBLIC, '10.0.0.1'] }, '10.0.0.1'],
    ['an IPv6 address', { ipv4: [PUBLIC], ipv6: ['fd00::1'] }, 'fd00::1'],
  ])('and none is used where %s is not public', async (_what, answer, address) => {
    const { resolve } = await bench({ [HOST]: answer });
    await expect(publicAddresses(HOST, resolve, false, lookUp)).rejects.toThrow(
      `${HOST} resolves to ${address}, which is not public`,
    );
  });

  test('but not for localhost', async () => {
    const { resolve, dns } = await bench({});
    for (const name of ['localhost', 'localhost.', 'seller.localhost']) {
      expect(await resolve(name, lookUp)).toEqual(['127.0.0.1', '::1']);
    }
    expect(dns.names()).toEqual([]);
  });

  test('instead of the system', async () => {
    const { resolve } = await bench({ [HOST]: { ipv4: [PUBLIC] } });
    const lookup = vi.spyOn(nodeDns.promises, 'lookup');
    await resolve(HOST, lookUp);
    await called(nodeFetch(modules()), `https://${'a'.repeat(64)}.example/`).catch(() => undefined);
    expect(lookup).not.toHaveBeenCalled();
    lookup.mockRestore();
  });

  test('and a document is fetched from the address they give', async () => {
    const at = await httpsBench((_req, res) => {
      res.end('{}');
    });
    const { resolve } = await bench({ [HOST]: { ipv4: [PUBLIC] } });
    expect(textOf(await fetched(transportIn(at.network, at.ca, { resolve })))).toBe('{}');
    expect(at.network.dialled).toEqual([PUBLIC]);
  });
});

describe('with a failure that names the option for names only the system knows', () => {
  test.each<[string, Readonly<Record<string, DnsAnswer>>, RegExp]>([
    ['no such name', {}, /ENOTFOUND/],
    ['no address', { [HOST]: {} }, /ENODATA/],
    ['a failing server', { [HOST]: { responseCode: 2 } }, /ESERVFAIL/],
    ['a server that answers for neither family in time', { [HOST]: SILENT_NAME }, /no answer within 300 ms/],
    [
      'one family without addresses, the other unknown',
      { [HOST]: { silent: ['A'] } },
      /no answer within 300 ms/,
    ],
  ])('%s', async (_what, zone, why) => {
    // Where there is an answer it is waited for, however slow the machine is.
    const { resolve } = await bench(zone, why.source.includes('300 ms') ? 300 : 30_000);
    const failing = resolve(HOST, lookUp);
    await expect(failing).rejects.toThrow(why);
    await expect(failing).rejects.toThrow(`the look-up of ${HOST} failed`);
    await expect(failing).rejects.toThrow("dns: 'system'");
  });

  test('also in the alarm of the document, without the address of a server', async () => {
    const { resolve } = await bench({});
    const result = await fetched(nodeFetch(modules(), { resolve }));
    expect(result).toMatchObject({ ok: false, reason: expect.stringContaining("dns: 'system'") });
  });
});

test('until the signal aborts the look-up and its queries', async () => {
  const { resolve, dns } = await bench({ [HOST]: SILENT_NAME });
  const cancel = vi.spyOn(nodeDns.promises.Resolver.prototype, 'cancel');
  const controller = new AbortController();
  const looking = resolve(HOST, { seller: SELLER, signal: controller.signal });
  await dns.asked(HOST);
  controller.abort(new Error('stopped'));
  await expect(looking).rejects.toThrow('stopped');
  expect(cancel).toHaveBeenCalledOnce();
  cancel.mockRestore();
});

test('so that a seller’s silent name server delays no other seller, with two look-ups at a time', async () => {
  const zone: Record<string, DnsAnswer> = {};
  const [silent, others] = [Array.from({ length: 20 }, (_, at) => `s${at}.silent.example`), ['a', 'b', 'c']];
  for (const name of silent) zone[name] = SILENT_NAME;
  for (const name of others) zone[`${name}.example`] = { ipv4: [PUBLIC] };
  const { resolve, dns } = await bench(zone);
  const controller = new AbortController();
  const stuck = silent.map((name) =>
    resolve(name, { seller: 'https://silent.example/', signal: controller.signal }),
  );
  const settled = Promise.allSettled(stuck);
  for (const name of others) {
    expect(await resolve(`${name}.example`, { seller: `https://${name}.example/`, signal })).toEqual([
      PUBLIC,
    ]);
  }
  // What the others asked came after what the silent one was let ask.
  expect(dns.names()).toEqual([
    's0.silent.example',
    's1.silent.example',
    'a.example',
    'b.example',
    'c.example',
  ]);
  controller.abort(new Error('stopped'));
  expect((await settled).every(({ status }) => status === 'rejected')).toBe(true);
});

describe('the system is asked', () => {
  test('with two look-ups at a time, of two sellers', async () => {
    const pending: string[] = [];
    const dns = {
      ...nodeDns,
      promises: {
        ...nodeDns.promises,
        lookup: (host: string) => {
          pending.push(host);
          return new Promise<never>(() => undefined);
        },
      },
    } as unknown as typeof nodeDns;
    const resolve = systemResolve(dns);
    const controller = new AbortController();
    const looking = ['a1', 'a2', 'b1', 'c1'].map((host) =>
      resolve(host, { seller: host.slice(0, 1), signal: controller.signal }),
    );
    await expect.poll(() => pending, PATIENT).toEqual(['a1', 'b1']);
    controller.abort(new Error('stopped'));
    await Promise.allSettled(looking);
    // They go on: a look-up by the system cannot be stopped.
    void resolve('d1', { seller: 'd', signal }).catch(() => undefined);
    expect(pending).toEqual(['a1', 'b1']);
  });

  test('and reads the hosts file', async () => {
    expect(await systemResolve(nodeDns)('localhost', lookUp)).toContain('127.0.0.1');
  });
});

const NEVER: AbortSignal = new AbortController().signal;

/** Work that ends when the test says so, and in which order it began. */
function works(limits: { readonly perSeller: number; readonly inAll: number }) {
  const inTurn = createSellerQueue(limits);
  const begun: string[] = [];
  const ends = new Map<string, () => void>();
  const run = (name: string, signal = NEVER): Promise<string> => {
    const [seller = ''] = name;
    return inTurn(seller, signal, async () => {
      begun.push(name);
      const { opened, open } = latch();
      ends.set(name, open);
      await opened;
      return name;
    });
  };
  return { begun, run, end: (name: string) => ends.get(name)?.() };
}

describe('sellers take turns', () => {
  test('each has a few at a time', async () => {
    const { begun, run, end } = works({ perSeller: 2, inAll: 10 });
    const first = run('a1');
    void run('a2');
    const third = run('a3');
    void run('b1');
    await expect.poll(() => begun).toEqual(['a1', 'a2', 'b1']);
    end('a1');
    expect(await first).toBe('a1');
    await expect.poll(() => begun).toEqual(['a1', 'a2', 'b1', 'a3']);
    end('a3');
    await third;
  });

  test('when all are busy the seller that has waited longest is next, however many one asked for', async () => {
    const { begun, run, end } = works({ perSeller: 2, inAll: 2 });
    const [one, two] = [run('a1'), run('a2')];
    for (const name of ['a3', 'a4', 'b1', 'b2', 'c1']) void run(name);
    await expect.poll(() => begun).toEqual(['a1', 'a2']);
    end('a1');
    await one;
    end('a2');
    await two;
    // a's turn came first among those who wait, then b's; a is behind c again.
    await expect.poll(() => begun).toEqual(['a1', 'a2', 'a3', 'b1']);
    end('b1');
    await expect.poll(() => begun.at(-1)).toBe('c1');
    end('a3');
    await expect.poll(() => begun.at(-1)).toBe('a4');
    end('c1');
    await expect.poll(() => begun.at(-1)).toBe('b2');
  });

  test('an aborted look-up loses its place and rejects with the reason', async () => {
    const { begun, run, end } = works({ perSeller: 1, inAll: 1 });
    const controller = new AbortController();
    const first = run('a1');
    const second = run('a2', controller.signal);
    const third = run('a3');
    controller.abort(new Error('stopped'));
    await expect(second).rejects.toThrow('stopped');
    await expect(run('b1', controller.signal)).rejects.toThrow('stopped');
    await expect.poll(() => begun).toEqual(['a1']);
    end('a1');
    await first;
    await expect.poll(() => begun).toEqual(['a1', 'a3']);
    end('a3');
    await third;
  });

  test('a running look-up keeps its place until it ends, also when it is no longer waited for', async () => {
    const { begun, run, end } = works({ perSeller: 1, inAll: 1 });
    const controller = new AbortController();
    const first = run('a1', controller.signal);
    const second = run('b1');
    await expect.poll(() => begun).toEqual(['a1']);
    controller.abort(new Error('stopped'));
    await expect(first).rejects.toThrow('stopped');
    expect(begun).toEqual(['a1']);
    end('a1');
    await expect.poll(() => begun).toEqual(['a1', 'b1']);
    end('b1');
    await second;
  });

  test('a failed look-up frees its place', async () => {
    const inTurn = createSellerQueue({ perSeller: 1, inAll: 1 });
    await expect(inTurn('a', NEVER, () => Promise.reject(new Error('failed')))).rejects.toThrow('failed');
    expect(await inTurn('a', NEVER, () => Promise.resolve(1))).toBe(1);
  });
});
