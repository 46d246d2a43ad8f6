import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import {
  createRegistrations,
  type JsonObject,
  type Registrations,
  type UrlState,
} from '../../src/registrations/index.ts';
import type { Store } from '../../src/index.ts';
import type { RegistrationKind } from '../../src/stores/index.ts';
import { memoryStore } from '../../src/stores/memory.ts';
import { sqliteStore } from '../../src/stores/sqlite.ts';
import { NEWEST } from './kit.ts';

const SELLER = { agentUrl: 'https://seller.example/mcp' };
const request = { ...SELLER, taskType: 'create_media_buy', arguments: {} };

describe.each([
  ['memory', () => memoryStore()],
  ['SQLite', () => sqliteStore(':memory:')],
] as const)('forget while a URL is made, %s', (_name, storeOf) => {
  let store: Store;
  beforeEach(async () => {
    store = storeOf();
    await store.open();
  });
  afterEach(() => store.close());

  const process = (
    between: (run: number) => Promise<void> = async () => {},
    baseUrl: string | readonly string[] = 'https://buyer.example/webhooks',
  ): Registrations => {
    const { registrations } = store;
    if (!registrations) return expect.fail('it has them');
    let runs = 0;
    const run: typeof registrations.run = async (sender, plan) => {
      await between((runs += 1));
      return registrations.run(sender, plan);
    };
    return createRegistrations({
      store: { ...store, registrations: { ...registrations, run } },
      baseUrl,
      secrets: [NEWEST],
    });
  };

  const kept = async (kind: RegistrationKind, sender: string): Promise<number> =>
    (await store.registrations?.page({ kind, sender, limit: 99 }))?.rows.length ?? -1;
  /** The seller's own rows: of its routes, and of its URLs. */
  const own = async (): Promise<readonly [number, number]> => {
    const sender = SELLER.agentUrl;
    const urls = await store.registrations?.page({ kind: 'route', sender, list: 'url', limit: 99 });
    return [(await kept('route', sender)) - (urls?.rows.length ?? 0), urls?.rows.length ?? -1];
  };

  /** Forgets before the store runs the nth step of another process. */
  const forgetBefore = (nth: number): Registrations => {
    const other = process();
    return process(async (run) => {
      if (run === nth) await other.forget(SELLER.agentUrl);
    });
  };

  // Its steps: the seller's own row, the row of the URL, whether the seller's own is still there.
  it.each([1, 2, 3, 4])(
    'before step %i of reportingWebhook: one URL at most, which forget finds',
    async (nth) => {
      await forgetBefore(nth).reportingWebhook(SELLER, { frequency: 'daily' });
      expect(await own()).toEqual([1, 1]);
      expect(await kept('route', '')).toBe(1);
      await process().forget(SELLER.agentUrl);
      expect([await kept('route', ''), await kept('route', SELLER.agentUrl)]).toEqual([0, 0]);
    },
  );

  it.each([1, 2, 3, 4])(
    'before step %i of create: what the call tells is a URL that is known',
    async (nth) => {
      const { toolArguments } = await forgetBefore(nth).create(request);
      const { url } = toolArguments['push_notification_config'] as { url: string };
      expect(await process().senders(new URL(url))).toEqual([SELLER]);
      expect(await kept('operation', SELLER.agentUrl)).toBe(1);
    },
  );

  it('a URL that an earlier process has left alone is found by its seller', async () => {
    await process().reportingWebhook(SELLER, { frequency: 'daily' });
    await store.registrations?.run(SELLER.agentUrl, (rows) => {
      const row = rows.get('route', 'reports') ?? expect.fail('a row');
      rows.save({ ...row, expiresAt: 1 });
    });
    expect(await kept('route', '')).toBe(1);
    await process().forget(SELLER.agentUrl);
    expect(await kept('route', '')).toBe(0);
  });

  describe('retire while a URL is told', () => {
    const DAILY = { frequency: 'daily' } as const;
    const only = async ({ state }: Registrations): Promise<UrlState> =>
      (await state()).urls[0] ?? expect.fail('a URL');
    const tokenRow = async (route: string): Promise<string> =>
      (await store.registrations?.run('', (rows) => rows.get('route', route)?.value)) ?? '';
    const secretAt = async (url: unknown): Promise<unknown> => {
      const [seller] = await process().senders(new URL(String(url)));
      return seller?.auth && 'reports' in seller.auth ? seller.auth.reports.secret : undefined;
    };

    // Its steps: the seller's own row, the row of the URL, what has become of it.
    it.each([1, 2, 3])(
      'before step %i of reportingWebhook: the token stays, without credentials',
      async (nth) => {
        const other = process();
        await other.reportingWebhook(SELLER, DAILY);
        const url = await only(other);
        const racing = process(async (run) => {
          if (run === nth) await other.retire(url, { force: true });
        });
        // Something new of the seller: the row is written again.
        const told = await racing.reportingWebhook({ ...SELLER, edition: '3.1' }, DAILY);
        const row = await tokenRow(url.route);
        expect(JSON.parse(row)).toMatchObject({ random: url.route, retiredAt: expect.any(Number) as number });
        expect(row).not.toContain('sealed');
        expect(await secretAt(told['url'])).toBe(
          (told['authentication'] as { credentials: string }).credentials,
        );
      },
    );

    it.each([1, 2, 3, 4, 5, 6, 7, 8])(
      'before step %i of retire, below another base: what is told has its credentials',
      async (nth) => {
        const [old, both] = [
          'https://old.example/hooks',
          ['https://new.example/hooks', 'https://old.example/hooks'],
        ];
        const first = process(undefined, old);
        await first.reportingWebhook(SELLER, DAILY);
        const url = await only(first);
        const told: JsonObject[] = [];
        const tell = async (): Promise<void> => {
          told.push(await process(undefined, both).reportingWebhook(SELLER, DAILY));
        };
        await process(async (run) => (run === nth ? tell() : undefined), both).retire(url, { force: true });
        if (told.length === 0) await tell();
        const { url: of, authentication } = told[0] ?? {};
        expect(await secretAt(of)).toBe((authentication as { credentials: string }).credentials);
      },
    );
  });
});
