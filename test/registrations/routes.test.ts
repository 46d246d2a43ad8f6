import { beforeEach, describe, expect, it, type Mock, vi } from 'vitest';
import { ConfigError, Fault } from '../../src/index.ts';
import type { StoreRegistrations } from '../../src/stores/index.ts';
import {
  makeRouteToken,
  REFRESH_MS,
  ROUTE_KEPT_MS,
  type Routes,
  routesOf,
  secretsOf,
} from '../../src/registrations/for-tests.ts';
import { memoryStore } from '../../src/stores/memory.ts';
import { createMemoryState } from '../../src/stores/for-tests.ts';
import { counted, FOREIGN, hashes, NEWEST, OLDER, WHOLE } from './kit.ts';

const BASE = 'https://buyer.example/webhooks';
const SELLER = { agentUrl: 'https://seller.example/mcp' } as const;
const OTHER = { agentUrl: 'https://other.example/mcp' } as const;

/** Processes on one store, each with a clock that the test moves; waits end at once, and are noted. */
function world() {
  const state = createMemoryState();
  const random = counted();
  const waits: number[] = [];
  const calls = { run: 0, page: 0 };
  let nowMs = 0;
  let fault: Error | undefined;
  /** Runs that still succeed before one fails. */
  let runsLeft = Infinity;
  const process = (...secrets: string[]): Routes => {
    const { registrations } = memoryStore({ state });
    if (!registrations) return expect.fail('memory has them');
    const counting: StoreRegistrations = {
      ...registrations,
      run: async (sender, plan) => {
        calls.run += 1;
        if (fault) throw fault;
        if (runsLeft === 0) throw new Fault('store_unavailable', 'away');
        runsLeft -= 1;
        return registrations.run(sender, plan);
      },
      page: async (query) => {
        calls.page += 1;
        if (fault) throw fault;
        return registrations.page(query);
      },
    };
    return routesOf({
      registrations: counting,
      baseUrls: [BASE],
      allowLoopback: false,
      secrets: secretsOf(secrets.length > 0 ? secrets : [NEWEST, OLDER], hashes),
      hashes,
      randomBytes: random,
      now: () => nowMs,
      sleep: async (ms) => {
        if (ms > 0) waits.push(ms);
        nowMs += ms;
      },
    });
  };
  return {
    process,
    calls,
    waits,
    pass: (ms: number) => (nowMs += ms),
    fail: (error: Error | undefined) => {
      fault = error;
      runsLeft = Infinity;
    },
    failAfter: (runs: number) => (runsLeft = runs),
    /** Calls of the store that `run` makes. */
    callsOf: async <T>(run: () => T | Promise<T>): Promise<[T, number]> => {
      const before = calls.run + calls.page;
      const value = await run();
      return [value, calls.run + calls.page - before];
    },
  };
}

let at: ReturnType<typeof world>;
beforeEach(() => {
  at = world();
});

describe("a seller's route", () => {
  it('is made once, below the base URL, and is the same for every process', async () => {
    const [one, two] = [at.process(), at.process()];
    const made = await Promise.all([one, two, one].map((routes) => routes.routeOf(SELLER)));
    expect(new Set(made.map(({ url }) => url)).size).toBe(1);
    expect(made[0]?.url).toMatch(/^https:\/\/buyer\.example\/webhooks\/[A-Za-z0-9_-]{48}$/);
    expect((await two.routeOf(OTHER)).url).not.toBe(made[0]?.url);
    expect(await two.senders(new URL(made[0]?.url ?? ''))).toEqual([SELLER]);
  });

  it('stays what it is when a newer secret is put in front', async () => {
    const { url } = await at.process(OLDER).routeOf(SELLER);
    const after = at.process(NEWEST, OLDER);
    expect((await after.routeOf(SELLER)).url).toBe(url);
    expect(await after.senders(new URL(url))).toEqual([SELLER]);
  });

  it('of a secret that is gone is a ConfigError, and counted', async () => {
    const { url } = await at.process(OLDER).routeOf(SELLER);
    const without = at.process(NEWEST);
    await expect(without.routeOf(SELLER)).rejects.toThrow(ConfigError);
    expect(await without.unreadable()).toBe(1);
    expect(await at.process().unreadable()).toBe(0);
    expect(await without.senders(new URL(url))).toEqual([]);
  });

  it('says of the seller what was said last', async () => {
    const routes = at.process();
    const { url } = await routes.routeOf(SELLER);
    await routes.routeOf({ ...SELLER, edition: '3.2', format: 'tool' });
    expect(await at.process().senders(new URL(url))).toEqual([{ ...SELLER, edition: '3.2', format: 'tool' }]);
  });

  it('for reports is another one, with credentials by which HMAC counts beside signatures', async () => {
    const routes = at.process();
    const [plain, hmac] = [await routes.routeOf(SELLER), await routes.routeOf(SELLER, 'HMAC-SHA256')];
    const { url, authentication } = await routes.reportsRouteOf(SELLER);
    const { credentials = '' } = authentication ?? {};
    expect(authentication).toEqual({ scheme: 'HMAC-SHA256', credentials });
    expect([plain.url, hmac.url]).not.toContain(url);
    expect(credentials).not.toBe(hmac.authentication?.credentials);
    expect(await at.process().reportsRouteOf(SELLER)).toMatchObject({ url, urls: [url], authentication });
    expect(await at.process().senders(new URL(url))).toEqual([
      { ...SELLER, auth: { reports: { secret: credentials } } },
    ]);
    await routes.forget(SELLER.agentUrl);
    expect(await routes.senders(new URL(url))).toEqual([]);
    expect((await routes.reportsRouteOf(SELLER)).url).not.toBe(url);
  });

  it.each(['HMAC-SHA256', 'Bearer'] as const)(
    'by %s is another one, with credentials of its own',
    async (scheme) => {
      const routes = at.process();
      const plain = await routes.routeOf(SELLER);
      const legacy = await routes.routeOf(SELLER, scheme);
      expect(plain.authentication).toBeUndefined();
      expect(legacy.url).not.toBe(plain.url);
      const { credentials = '' } = legacy.authentication ?? {};
      expect(legacy.authentication).toEqual({ scheme, credentials });
      expect(credentials).toMatch(/^[A-Za-z0-9_-]{43}$/);
      expect(await at.process().routeOf(SELLER, scheme)).toEqual(legacy);
      expect(await at.process().senders(new URL(legacy.url))).toEqual([
        {
          ...SELLER,
          auth: scheme === 'Bearer' ? { bearer: { token: credentials } } : { hmac: { secret: credentials } },
        },
      ]);
      expect(await routes.senders(new URL(plain.url))).toEqual([SELLER]);
    },
  );
});

describe('who may call a URL', () => {
  it('of an invented path costs no call of the store', async () => {
    const routes = at.process();
    const { url } = await routes.routeOf(SELLER);
    const foreign = makeRouteToken(secretsOf([FOREIGN], hashes), hashes, counted()).text;
    for (const token of [foreign, 'A'.repeat(48), url.slice(-48).toLowerCase(), `${url.slice(-47)}A`]) {
      const [found, calls] = await at.callsOf(() => routes.senders(new URL(`${BASE}/${token}`)));
      expect([found, calls]).toEqual([[], 0]);
    }
  });

  it('is looked up once, and again when that is old', async () => {
    const { url } = await at.process().routeOf(SELLER);
    const routes = at.process();
    const look = (): Promise<[unknown, number]> => at.callsOf(() => routes.senders(new URL(url)));
    expect(await look()).toEqual([[SELLER], 1]);
    expect(await look()).toEqual([[SELLER], 0]);
    at.pass(ROUTE_KEPT_MS);
    expect(await look()).toEqual([[SELLER], 1]);
  });

  it('is known to every process before anybody is told it, also where another had died between its two rows', async () => {
    const [one, two, three] = [at.process(), at.process(), at.process()];
    at.failAfter(1);
    await expect(one.routeOf(SELLER)).rejects.toThrow('away');
    at.fail(undefined);
    const { url } = await two.routeOf(SELLER);
    expect(await at.callsOf(() => three.senders(new URL(url)))).toEqual([[SELLER], 1]);
  });

  it('that was forgotten is looked up once; its seller is told another, which is found at once', async () => {
    const [one, two] = [at.process(), at.process()];
    const { url: forgotten } = await one.routeOf(SELLER);
    await one.forget(SELLER.agentUrl);
    const look = (url: string): Promise<[unknown, number]> => at.callsOf(() => two.senders(new URL(url)));
    expect(await look(forgotten)).toEqual([[], 1]);
    expect(await look(forgotten)).toEqual([[], 0]);
    const { url } = await one.routeOf(SELLER);
    expect(url).not.toBe(forgotten);
    expect(await look(url)).toEqual([[SELLER], 1]);
  });

  it('does not change with a query behind the path', async () => {
    const routes = at.process();
    const { url } = await routes.routeOf(SELLER);
    expect(await routes.senders(new URL(`${url}?a=/b`))).toEqual([SELLER]);
  });

  it('cannot be told where the store cannot be asked', async () => {
    const { url } = await at.process().routeOf(SELLER);
    const routes = at.process();
    at.fail(new Fault('store_unavailable', 'away'));
    await expect(routes.senders(new URL(url))).rejects.toThrow('away');
    await expect(routes.senders(new URL(`${BASE}/adopted`))).rejects.toThrow('away');
    at.fail(undefined);
    expect(await routes.senders(new URL(url))).toEqual([SELLER]);
  });
});

describe('an adopted URL', () => {
  const URL_1 = `${BASE}/old/path?of=seller`;

  it('leads to its seller in every process: one that does not know it looks again', async () => {
    const [one, two] = [at.process(), at.process()];
    await two.senders(new URL(`${BASE}/nothing`));
    await one.adopt({ ...SELLER, edition: '3.1' }, URL_1);
    expect(await at.callsOf(() => one.senders(new URL(URL_1)))).toEqual([[{ ...SELLER, edition: '3.1' }], 0]);
    expect(await two.senders(new URL(URL_1))).toEqual([{ ...SELLER, edition: '3.1' }]);
    expect(await two.senders(new URL(`${BASE}/old/path`))).toEqual([]);
  });

  describe('is looked for at most once a second', () => {
    let page: Mock<StoreRegistrations['page']>;
    let routes: Routes;
    /** Deliveries to unknown paths, and how many were answered. */
    let answered: number;
    const unknown = (count: number): void => {
      for (let n = 0; n < count; n += 1) {
        const asked = Promise.resolve(routes.senders(new URL(`${BASE}/unknown-${n}`)));
        const count1 = (): number => (answered += 1);
        asked.then(count1, count1);
      }
    };

    beforeEach(() => {
      vi.useFakeTimers();
      answered = 0;
      const { registrations } = memoryStore();
      if (!registrations) return expect.fail('memory has them');
      page = vi.fn(async (query) => registrations.page(query));
      routes = routesOf({
        registrations: { ...registrations, page },
        baseUrls: [BASE],
        allowLoopback: false,
        secrets: secretsOf([NEWEST], hashes),
        hashes,
        randomBytes: counted(),
        now: () => Date.now(),
        sleep: async (ms) => new Promise((resolve) => void setTimeout(resolve, ms)),
      });
      return () => void vi.useRealTimers();
    });

    it('however many unknown paths come; each waits for a look that begins after it', async () => {
      unknown(20);
      await vi.advanceTimersByTimeAsync(100);
      expect([page.mock.calls.length, answered]).toEqual([1, 20]);
      await vi.advanceTimersByTimeAsync(300);
      unknown(20);
      await vi.advanceTimersByTimeAsync(REFRESH_MS - 401);
      expect([page.mock.calls.length, answered]).toEqual([1, 20]);
      await vi.advanceTimersByTimeAsync(100);
      expect([page.mock.calls.length, answered]).toEqual([2, 40]);
    });

    it('and a look that fails ends all that waited for it', async () => {
      page.mockRejectedValueOnce(new Fault('store_unavailable', 'away'));
      unknown(20);
      await vi.advanceTimersByTimeAsync(100);
      expect([page.mock.calls.length, answered]).toEqual([1, 20]);
    });

    it('and one that never ends, for its request has died, is made anew by the next', async () => {
      page.mockReturnValueOnce(new Promise(() => {}));
      unknown(20);
      await vi.advanceTimersByTimeAsync(REFRESH_MS - 1);
      expect([page.mock.calls.length, answered]).toEqual([1, 0]);
      await vi.advanceTimersByTimeAsync(100);
      expect([page.mock.calls.length, answered]).toEqual([2, 19]);
    });
  });

  it('has several sellers where several were given it', async () => {
    const routes = at.process();
    await routes.adopt(SELLER, URL_1);
    await routes.adopt(OTHER, URL_1);
    const found = await routes.senders(new URL(URL_1));
    expect(found.map(({ agentUrl }) => agentUrl).toSorted()).toEqual([OTHER.agentUrl, SELLER.agentUrl]);
  });

  it('is one of 10,000 at most', async () => {
    const { registrations } = memoryStore();
    if (!registrations) return expect.fail('memory has them');
    let count = 0;
    const row = { kind: 'route', sender: '', dueAt: null, list: 'adopted', expiresAt: null } as const;
    const value = JSON.stringify({ ...OTHER, scheme: 'signature', path: '/webhooks/other' });
    const adopted = Array.from({ length: 10_000 }, (_, nth) => ({ ...row, id: `${nth}`, value }));
    const routes = routesOf({
      registrations: {
        ...registrations,
        page: async (query) =>
          query.list === 'adopted' ? { rows: adopted.slice(0, count) } : registrations.page(query),
      },
      baseUrls: [BASE],
      allowLoopback: false,
      secrets: secretsOf([NEWEST], hashes),
      hashes,
      randomBytes: counted(),
      now: () => 0,
      sleep: async () => {},
    });
    const written = async (): Promise<number> =>
      (await registrations.page({ kind: 'route', sender: '', limit: 9 })).rows.length;
    count = 10_000;
    const adopting = routes.adopt(SELLER, URL_1);
    await expect(adopting).rejects.toThrow(ConfigError);
    await expect(adopting).rejects.toThrow(
      'adopt: 10000 URLs are adopted already, which is the limit. Have sellers send to URLs of their own, or forget some.',
    );
    expect(await written()).toBe(0);
    count -= 1;
    await routes.adopt(SELLER, URL_1);
    expect(await written()).toBe(1);
  });

  it('that has the form of a URL that is made here is a ConfigError: it would never be found', async () => {
    const url = `${BASE}/${'a'.repeat(48)}`;
    await expect(at.process().adopt(SELLER, url)).rejects.toThrow(/has the form of/);
    expect(at.calls).toEqual({ run: 0, page: 0 });
  });

  it.each([
    'https://buyer.example/other/x',
    'https://buyer.example/webhooks',
    'http://buyer.example/webhooks/x',
    'x',
    '',
  ])('that no delivery reaches (%s) is a ConfigError', async (url) => {
    await expect(at.process().adopt(SELLER, url)).rejects.toThrow(ConfigError);
    expect(at.calls).toEqual({ run: 0, page: 0 });
  });
});

describe('a seller that cannot be', () => {
  it.each([
    [{ agentUrl: 'seller.example' }, 'agentUrl'],
    [{ agentUrl: 'http://seller.example' }, 'agentUrl'],
    [{ ...SELLER, brandJsonUrl: '/brand.json' }, 'brandJsonUrl'],
    [{ ...SELLER, edition: '2.0' as '3.1' }, 'edition'],
    [{ ...SELLER, format: 'both' as 'tool' }, 'format'],
  ])('%j is told before anything is written', async (seller, name) => {
    const error = { code: 'request_invalid', message: expect.stringContaining(name) };
    await expect(at.process().routeOf(seller)).rejects.toMatchObject(error);
    await expect(at.process().adopt(seller, `${BASE}/x`)).rejects.toMatchObject(error);
    expect(at.calls).toEqual({ run: 0, page: 0 });
  });

  it('nor may a scheme', async () => {
    const error = { code: 'request_invalid', message: expect.stringContaining('scheme') };
    await expect(at.process().routeOf(SELLER, 'Basic' as 'Bearer')).rejects.toMatchObject(error);
  });
});

describe('rewrap', () => {
  it('encrypts credentials under the newest secret, and counts the URLs of older ones', async () => {
    const before = at.process(OLDER);
    const { url, authentication } = await before.routeOf(SELLER, 'HMAC-SHA256');
    await before.routeOf(SELLER);
    const both = at.process(NEWEST, OLDER);
    expect(await both.rewrap()).toEqual({ rewrapped: 1, needed: 2, ...WHOLE });
    expect(await both.rewrap()).toEqual({ rewrapped: 0, needed: 2, ...WHOLE });
    // By either row of the route: nothing changes for the seller.
    expect(await at.process(NEWEST, OLDER).routeOf(SELLER, 'HMAC-SHA256')).toMatchObject({
      url,
      urls: [url],
      authentication,
    });
    const auth = { hmac: { secret: authentication?.credentials } };
    expect(await at.process(NEWEST, OLDER).senders(new URL(url))).toEqual([{ ...SELLER, auth }]);
    await both.routeOf(OTHER, 'Bearer');
    expect(await both.rewrap()).toEqual({ rewrapped: 0, needed: 2, ...WHOLE });
  });

  it('what it has encrypted needs the new secret: unreadable counts it', async () => {
    await at.process(OLDER).routeOf(SELLER, 'HMAC-SHA256');
    await at.process(NEWEST, OLDER).rewrap();
    expect(await at.process(OLDER).unreadable()).toBe(1);
    expect(await at.process(NEWEST, OLDER).unreadable()).toBe(0);
  });

  it('goes on where it was interrupted between the rows of a route', async () => {
    const { authentication } = await at.process(OLDER).routeOf(SELLER, 'Bearer');
    const both = at.process(NEWEST, OLDER);
    at.failAfter(1);
    await expect(both.rewrap()).rejects.toThrow('away');
    at.fail(undefined);
    expect(await both.rewrap()).toEqual({ rewrapped: 1, needed: 1, ...WHOLE });
    expect(await at.process(NEWEST, OLDER).routeOf(SELLER, 'Bearer')).toMatchObject({ authentication });
  });
});

describe('forget', () => {
  it('ends every URL of the seller, in other processes within ten seconds, and none of another', async () => {
    const [one, two] = [at.process(), at.process()];
    const urls = [
      (await one.routeOf(SELLER)).url,
      (await one.routeOf(SELLER, 'HMAC-SHA256')).url,
      `${BASE}/adopted`,
    ];
    await one.adopt(SELLER, `${BASE}/adopted`);
    await one.adopt(OTHER, `${BASE}/adopted/other`);
    const { url: other } = await one.routeOf(OTHER);
    for (const url of urls) expect(await two.senders(new URL(url))).toHaveLength(1);
    await one.forget(SELLER.agentUrl);
    for (const url of urls) expect(await one.senders(new URL(url))).toEqual([]);
    at.pass(ROUTE_KEPT_MS);
    for (const url of urls) expect(await two.senders(new URL(url))).toEqual([]);
    expect(await two.senders(new URL(other))).toEqual([OTHER]);
    expect(await two.senders(new URL(`${BASE}/adopted/other`))).toEqual([OTHER]);
    // One that is registered again has a new URL.
    expect((await two.routeOf(SELLER)).url).not.toBe(urls[0]);
  });
});
