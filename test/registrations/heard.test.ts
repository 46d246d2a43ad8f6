import { randomBytes, randomUUID } from 'node:crypto';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type Alarm, createReceiver, Fault, type Outcome, type Receiver } from '../../src/index.ts';
import type { Event } from '../../src/events/index.ts';
import type { JsonObject, Registrations } from '../../src/registrations/index.ts';
import { buyStreamIn, type GivenUrl, givenIn, registrationsOf } from '../../src/registrations/for-tests.ts';
import type { Store } from '../../src/stores/index.ts';
import { memoryStore } from '../../src/stores/memory.ts';
import { createMemoryState } from '../../src/stores/for-tests.ts';
import { payloads, said } from '../receiver/setup.ts';
import { reportBody } from '../reconcile/kit.ts';
import { SILENT_LOGGER } from '../support/silent-logger.ts';
import { gate } from '../support/gate.ts';
import { hashes, NEWEST } from './kit.ts';

const SELLER = 'https://seller.example/mcp';
const BASE = 'https://buyer.example/webhooks';
const MINUTE_MS = 60_000;
const DAY = { start: '2026-03-02T00:00:00Z', end: '2026-03-03T00:00:00Z' };

let state: ReturnType<typeof createMemoryState>;
let nowMs: number;
const opened: Receiver[] = [];
beforeEach(() => {
  state = createMemoryState();
  nowMs = 0;
});
afterEach(async () => {
  for (const receiver of opened.splice(0)) await receiver.stop();
});

const storeHere = (): Store => memoryStore({ state, clockOffsetMs: () => nowMs });
const rowsHere = (): NonNullable<Store['registrations']> =>
  storeHere().registrations ?? expect.fail('memory has them');

interface Process {
  readonly registrations: Registrations;
  readonly receiver: Receiver;
  readonly handled: Event[];
  readonly alarms: Alarm[];
  /** Steps over rows of registrations that have begun. */
  readonly steps: () => number;
}

/** A process of the buyer on the one store. @param step runs in place of each step of a seller. */
function process(step: <T>(run: () => Promise<T>, sender: string) => Promise<T> = (run) => run()): Process {
  let steps = 0;
  const stored = storeHere();
  const rows = stored.registrations ?? expect.fail('memory has them');
  const run: typeof rows.run = (sender, plan) => {
    steps += 1;
    // The look-up of a route is of no seller.
    return sender === '' ? rows.run(sender, plan) : step(() => rows.run(sender, plan), sender);
  };
  const registrations: Store['registrations'] = { ...rows, run };
  const store = { ...stored, registrations };
  const own = registrationsOf(
    { store, baseUrl: BASE, secrets: [NEWEST] },
    {
      hashes,
      randomBytes: (count) => new Uint8Array(randomBytes(count)),
      newId: () => randomUUID(),
      now: () => nowMs,
      sleep: async () => {},
    },
  );
  const handled: Event[] = [];
  const alarms: Alarm[] = [];
  const receiver = createReceiver({
    registrations: own,
    store,
    durability: { require: 'process' },
    logger: SILENT_LOGGER,
    onAlarm: (alarm) => alarms.push(alarm),
    handlers: { other: (event) => void handled.push(event) },
  });
  opened.push(receiver);
  return { registrations: own, receiver, handled, alarms, steps: () => steps };
}

interface Config {
  readonly url: string;
  readonly authentication: { readonly credentials: string };
}

/** A registered call whose webhooks come by bearer token. */
async function told({ registrations }: Process, more: JsonObject = {}, agentUrl = SELLER): Promise<Config> {
  const made = await registrations.create({
    agentUrl,
    taskType: 'create_media_buy',
    arguments: more,
    scheme: 'Bearer',
  });
  await made.settle({ status: 'completed', media_buy_id: 'buy-1', packages: [] });
  return made.toolArguments['push_notification_config'] as unknown as Config;
}

const post = (
  { receiver }: Process,
  { url, authentication: { credentials } }: Config,
  body: object = payloads.tool('completed'),
): Promise<Outcome> =>
  receiver.verifyAndDispatch(
    new TextEncoder().encode(JSON.stringify(body)),
    { 'content-type': 'application/json', authorization: `Bearer ${credentials}` },
    { url: url.slice('https://buyer.example'.length) },
  );

/** URLs of the seller, as they are stored; once what is written behind answers is written. */
async function given(sender = SELLER): Promise<readonly GivenUrl[]> {
  const { rows } = await rowsHere().page({ kind: 'route', sender, limit: 100 });
  return rows.filter(({ list }) => list === 'url').map(givenIn);
}
const heardAt = async (sender = SELLER): Promise<number | undefined> => {
  await written();
  return (await given(sender)).find(({ kind }) => kind === 'Bearer')?.heardAt;
};
/** The memory store answers within microtasks. */
const written = (): Promise<void> => new Promise((resolve) => void setImmediate(resolve));
const storeNow = (): Promise<number> => rowsHere().run(SELLER, (_rows, now) => now);

describe('a URL that a seller was given', () => {
  it('has a row of its own, with when it was given and when its credentials were made; the same for every process', async () => {
    await told(process());
    const first = await given();
    expect(first).toEqual([
      {
        base: BASE,
        route: expect.stringMatching(/^[\w-]{22}$/) as string,
        kind: 'Bearer',
        givenAt: expect.any(Number) as number,
        madeAt: first[0]?.givenAt,
      },
    ]);
    nowMs += MINUTE_MS;
    await told(process());
    expect(await given()).toEqual(first);
  });

  it('one that is adopted has one too, without credentials', async () => {
    await process().registrations.adopt({ agentUrl: SELLER, url: `${BASE}/old?x=1` });
    expect(await given()).toMatchObject([{ base: BASE, route: 'old?x=1', isAdopted: true }]);
    expect((await given())[0]).not.toHaveProperty('madeAt');
  });

  it('goes with its seller; a call that is registered again has another one', async () => {
    const one = process();
    await told(one);
    const [before] = await given();
    await one.registrations.forget(SELLER);
    expect(await given()).toEqual([]);
    await told(one);
    const [after] = await given();
    expect(after?.route).not.toBe(before?.route);
  });
});

describe('an authentic delivery by it', () => {
  it('is noted, and once a minute alone, whatever comes', async () => {
    const one = process();
    const config = await told(one);
    expect(await heardAt()).toBeUndefined();
    const body = payloads.tool('completed');
    expect(said(await post(one, config, body))).toBe('accepted 200');
    const first = (await heardAt()) ?? 0;
    expect(first).toBeGreaterThan(0);
    nowMs += MINUTE_MS - 1;
    // A duplicate, an unreadable body and a new event, within the minute: one step each, of the event's own.
    expect(said(await post(one, config, body))).toBe('duplicate 200');
    expect((await post(one, config, [])).kind).toBe('refused');
    expect(said(await post(one, config))).toBe('accepted 200');
    expect(await heardAt()).toBe(first);
    nowMs += MINUTE_MS;
    // A duplicate counts.
    expect(said(await post(one, config, body))).toBe('duplicate 200');
    expect(await heardAt()).toBeGreaterThanOrEqual(first + 2 * MINUTE_MS - 1);
  });

  it('that is forged does not count, nor one by a URL that nobody was given', async () => {
    const one = process();
    const config = await told(one);
    const forged = { ...config, authentication: { credentials: 'x'.repeat(43) } };
    expect((await post(one, forged)).response.status).toBe(401);
    const elsewhere = { ...config, url: `${config.url.slice(0, -1)}${config.url.endsWith('A') ? 'B' : 'A'}` };
    expect((await post(one, elsewhere)).response.status).toBe(401);
    expect(await heardAt()).toBeUndefined();
  });

  it('with other words behind the URL is one a minute all the same', async () => {
    const one = process();
    const config = await told(one);
    await post(one, config);
    await written();
    const before = one.steps();
    for (let n = 0; n < 5; n += 1) {
      await post(one, { ...config, url: `${config.url}?n=${n}` }, payloads.tool('completed'));
    }
    await written();
    // An event that names no operation is looked for by one step; the URL takes none.
    expect(one.steps() - before).toBeLessThanOrEqual(10);
    expect((await given()).length).toBe(1);
  });

  it('two processes note one, and neither sets it back', async () => {
    const [one, two] = [process(), process()];
    const config = await told(one);
    await post(one, config);
    const first = (await heardAt()) ?? 0;
    nowMs += 5 * MINUTE_MS;
    await post(two, config);
    const second = (await heardAt()) ?? 0;
    expect(second).toBeGreaterThanOrEqual(first + 5 * MINUTE_MS);
    // A clock that steps back.
    nowMs -= 3 * MINUTE_MS;
    await post(process(), config);
    expect(await heardAt()).toBe(second);
  });

  it('no answer waits for it, none fails by it, and stop() waits until it is written', async () => {
    const held = gate();
    let isSlow = false;
    const one = process(async (run) => {
      if (isSlow) await held.opened;
      return run();
    });
    const config = await told(one);
    await post(one, config);
    const first = (await heardAt()) ?? 0;
    nowMs += MINUTE_MS;
    isSlow = true;
    // An unreadable body has no step of registrations but this one.
    expect((await post(one, config, [])).kind).toBe('refused');
    expect(await heardAt()).toBe(first);
    const stopped = one.receiver.stop();
    held.open();
    await stopped;
    expect(await heardAt()).toBeGreaterThan(first);
  });

  it('what cannot be written is written with the next delivery, after a pause', async () => {
    let fails = false;
    const one = process(async (run) => {
      if (fails) throw new Fault('store_unavailable', 'away');
      return run();
    });
    const config = await told(one);
    await post(one, config);
    const first = (await heardAt()) ?? 0;
    nowMs += MINUTE_MS;
    fails = true;
    expect((await post(one, config, [])).kind).toBe('refused');
    expect(await heardAt()).toBe(first);
    const before = one.steps();
    expect((await post(one, config, [])).kind).toBe('refused');
    await written();
    expect(one.steps()).toBe(before);
    fails = false;
    nowMs += 1000;
    expect((await post(one, config, [])).kind).toBe('refused');
    expect(await heardAt()).toBeGreaterThan(first);
  });
});

describe('a URL whose row cannot be written', () => {
  it('keeps no other one from being noted, and is written again with any delivery', async () => {
    let isBroken = false;
    const one = process(async (run, sender) => {
      if (isBroken && sender === SELLER) throw new Fault('store_unavailable', 'this row alone');
      return run();
    });
    const other = 'https://other.example/mcp';
    const configs = [await told(one), await told(one, {}, other)] as const;
    for (const config of configs) await post(one, config);
    const [first, second] = [await heardAt(), await heardAt(other)];
    isBroken = true;
    nowMs += MINUTE_MS;
    // The second one comes while nothing is written, and not again.
    for (const config of configs) expect((await post(one, config, [])).kind).toBe('refused');
    nowMs += 1000;
    expect((await post(one, configs[0], [])).kind).toBe('refused');
    expect(await heardAt(other)).toBeGreaterThan(second ?? Infinity);
    expect(await heardAt()).toBe(first);
    isBroken = false;
    nowMs += 1000;
    expect((await post(one, configs[1], [])).kind).toBe('refused');
    expect(await heardAt()).toBeGreaterThan(first ?? Infinity);
  });
});

describe('an event of a media buy', () => {
  const reporting = { url: 'https://elsewhere.example/r', reporting_frequency: 'daily' };
  const heard = async (): Promise<readonly (number | undefined)[]> => {
    const { rows } = await rowsHere().page({ kind: 'stream', sender: SELLER, limit: 9 });
    return rows.flatMap((row) => (buyStreamIn(row).told ?? []).map((one) => one.heardAt));
  };

  it('notes the URL with its stream, in the step that admits it', async () => {
    const one = process();
    const config = await told(one, { reporting_webhook: reporting });
    expect(await heard()).toEqual([undefined]);
    await post(one, config, reportBody(DAY, { mediaBuyId: 'buy-2' }));
    expect((await heard()).filter((at) => at !== undefined)).toEqual([]);
    await post(one, config, reportBody(DAY, { mediaBuyId: 'buy-1' }));
    const at = await storeNow();
    const [first = 0] = await heard();
    expect(first).toBeGreaterThan(0);
    expect(first).toBeLessThanOrEqual(at);
    nowMs += MINUTE_MS;
    const impairment = {
      idempotency_key: randomUUID(),
      notification_type: 'impairment',
      notification_id: 'n-1',
      fired_at: new Date().toISOString(),
      media_buy_id: 'buy-1',
      impairment_id: 'i-1',
    };
    expect(said(await post(one, config, impairment))).toBe('accepted 200');
    expect((await heard())[0]).toBeGreaterThanOrEqual(first + MINUTE_MS);
  });
});

describe('a URL that is retired', () => {
  const DAY_MS = 86_400_000;
  const bearer = async ({ registrations }: Process) =>
    (await registrations.state()).urls.find(({ scheme }) => scheme === 'Bearer') ?? expect.fail('no URL');
  const retiredAlarms = (...of: readonly Process[]): number =>
    of.flatMap(({ alarms }) => alarms).filter(({ code }) => code === 'retired_url_used').length;

  it('is refused while somebody is on it, and until it is quiet; both are named', async () => {
    const one = process();
    const made = await one.registrations.create({
      agentUrl: SELLER,
      taskType: 'sync_creatives',
      arguments: {},
      scheme: 'Bearer',
    });
    const url = await bearer(one);
    await expect(one.registrations.retire(url)).rejects.toMatchObject({
      code: 'url_in_use',
      message: expect.stringContaining(`1 calls (${made.operationId}) are on it`) as string,
    });
    await made.settle({ status: 'completed', creatives: [] });
    await expect(one.registrations.retire(url)).rejects.toThrow(
      /it is quiet at 2\d{3}-.*Z if nothing more comes/,
    );
    nowMs += DAY_MS - 2000;
    await expect(one.registrations.retire(url)).rejects.toMatchObject({ code: 'url_in_use' });
    const config = made.toolArguments['push_notification_config'] as unknown as Config;
    // Whatever comes by it puts that off.
    await post(one, config);
    await written();
    nowMs += 4000;
    await expect(one.registrations.retire(url)).rejects.toMatchObject({ code: 'url_in_use' });
    nowMs += DAY_MS + 2 * MINUTE_MS;
    await one.registrations.retire(url);
    expect((await one.registrations.state()).urls).toEqual([]);
    // Again: nothing more.
    await process().registrations.retire(url);
  });

  it('by force: its credentials are gone, the next call has another URL, and the seller is answered 503, with one alarm a day', async () => {
    const [one, two] = [process(), process()];
    const config = await told(one);
    await post(two, config);
    const url = await bearer(one);
    await one.registrations.retire(url, { force: true });
    expect(JSON.stringify(await rowsHere().page({ kind: 'route', sender: '', limit: 9 }))).not.toContain(
      'sealed',
    );
    const again = await told(one);
    expect(again.url).not.toBe(config.url);
    expect(said(await post(one, again))).toBe('accepted 200');
    // The other process has the route for ten seconds.
    nowMs += 10_000;
    for (const to of [one, two, one]) {
      expect(said(await post(to, config))).toBe('unavailable misconfigured 503');
      await written();
    }
    expect(retiredAlarms(one, two)).toBe(1);
    expect(one.alarms.find(({ code }) => code === 'retired_url_used')).toMatchObject({
      sender: SELLER,
      base: BASE,
    });
    nowMs += DAY_MS;
    expect(said(await post(two, config))).toBe('unavailable misconfigured 503');
    await written();
    expect(retiredAlarms(one, two)).toBe(2);
    // Nobody knows who sent that: it is not heard.
    expect((await given()).find(({ route }) => route === url.route)?.heardAt).toBeLessThan(
      (await storeNow()) - DAY_MS,
    );
    // A media buy is on it all the same, and says so.
    expect((await one.registrations.state()).urls.find(({ route }) => route === url.route)).toMatchObject({
      retiredAt: expect.any(Number) as number,
      mediaBuys: ['buy-1'],
    });
    // Without force, too, it stays retired.
    await one.registrations.retire(url);
    expect((await given()).find(({ route }) => route === url.route)?.retiredAt).toBeDefined();
  });

  it.each([1, 2, 3, 4, 5, 6])(
    'a process that dies in step %i of it leaves what the next one finishes',
    async (nth) => {
      let left = Infinity;
      const dying = process(async (run) => {
        left -= 1;
        if (left <= 0) throw new Fault('store_unavailable', 'the process has died');
        return run();
      });
      const made = await dying.registrations.create({
        agentUrl: SELLER,
        taskType: 'sync_creatives',
        arguments: {},
        scheme: 'Bearer',
      });
      await made.settle({ status: 'completed', creatives: [] });
      const config = made.toolArguments['push_notification_config'] as unknown as Config;
      const url = await bearer(dying);
      left = nth;
      await dying.registrations.retire(url, { force: true }).catch(() => undefined);
      const next = process();
      nowMs += 2 * DAY_MS;
      // Nobody is on it, but its credentials count.
      const listed = async () =>
        (await next.registrations.state()).urls.some(({ route }) => route === url.route);
      const hasCredentials = async (): Promise<boolean> =>
        (await rowsHere().run('', (rows) => rows.get('route', url.route)))?.value.includes('sealed') === true;
      if (await hasCredentials()) expect(await listed()).toBe(true);
      await next.registrations.retire(url, { force: true });
      expect([await listed(), await hasCredentials()]).toEqual([false, false]);
      expect((await told(next)).url).not.toBe(config.url);
      expect(said(await post(next, config))).toBe('unavailable misconfigured 503');
      expect((await given()).filter(({ retiredAt }) => retiredAt !== undefined)).toHaveLength(1);
    },
  );

  it('one of reports takes what is signed, and no HMAC any more', async () => {
    const one = process();
    const { url } = (await one.registrations.reportingWebhook(
      { agentUrl: SELLER },
      { frequency: 'daily' },
    )) as unknown as Config;
    const { urls } = await one.registrations.state();
    await one.registrations.retire(urls[0] ?? expect.fail('no URL'), { force: true });
    await expect(
      one.registrations.create({
        agentUrl: SELLER,
        taskType: 'create_media_buy',
        arguments: { packages: [], reporting_webhook: { url, reporting_frequency: 'daily' } },
      }),
    ).rejects.toMatchObject({
      code: 'request_invalid',
      message: expect.stringContaining('its URL was retired') as string,
    });
    const hmac = {
      'content-type': 'application/json',
      'x-adcp-signature': `sha256=${'0'.repeat(64)}`,
      'x-adcp-timestamp': String(Math.floor(Date.now() / 1000)),
    };
    const path = { url: new URL(url).pathname };
    const outcome = await one.receiver.verifyAndDispatch(new Uint8Array(2), hmac, path);
    expect(said(outcome)).toBe('unavailable misconfigured 503');
    await written();
    expect(retiredAlarms(one)).toBe(1);
    // What has a signature is judged by it.
    const signed = {
      'content-type': 'application/json',
      'signature-input': 'sig=()',
      signature: 'sig=:AA==:',
    };
    expect((await one.receiver.verifyAndDispatch(new Uint8Array(2), signed, path)).response.status).toBe(401);
  });

  it('one that is adopted again is alive again', async () => {
    const one = process();
    await one.registrations.adopt({ agentUrl: SELLER, url: `${BASE}/old` });
    const [url] = (await one.registrations.state()).urls;
    await one.registrations.retire(url ?? expect.fail('no URL'), { force: true });
    expect((await one.registrations.state()).urls).toEqual([]);
    await one.registrations.adopt({ agentUrl: SELLER, url: `${BASE}/old` });
    expect((await one.registrations.state()).urls).toMatchObject([{ route: 'old' }]);
  });

  // Its steps: the seller's own row, and the operation's.
  it.each([1, 2])('before step %i of a call: that names another one', async (nth) => {
    const one = process();
    const before = await told(one);
    const url = await bearer(one);
    let left = nth;
    const racing = process(async (run) => {
      left -= 1;
      if (left === 0) {
        await one.registrations.retire(url, { force: true });
        // The seller has another one by then.
        await told(one);
      }
      return run();
    });
    const config = await told(racing);
    expect(config.url).not.toBe(before.url);
    expect(said(await post(process(), config))).toBe('accepted 200');
  });

  it('a call that told it meanwhile keeps it alive', async () => {
    const one = process();
    const made = await one.registrations.create({
      agentUrl: SELLER,
      taskType: 'sync_creatives',
      arguments: {},
      scheme: 'Bearer',
    });
    await made.settle({ status: 'completed', creatives: [] });
    const url = await bearer(one);
    nowMs += 2 * DAY_MS;
    let steps = 0;
    const racing: Process = process(async (run) => {
      steps += 1;
      // Between what it reads and what it writes.
      if (steps === 1) await told(one);
      return run();
    });
    await expect(racing.registrations.retire(url)).rejects.toMatchObject({ code: 'url_in_use' });
    expect((await given()).find(({ route }) => route === url.route)).not.toHaveProperty('retiredAt');
  });

  it.each([
    [{ agentUrl: SELLER, base: BASE, route: 'nobody' }, {}, 'the seller was not given the URL'],
    [{ agentUrl: 'x', base: BASE, route: 'nobody' }, {}, 'agentUrl'],
    [{ agentUrl: SELLER, base: BASE }, {}, 'route'],
    [undefined, {}, 'agentUrl'],
    [{ agentUrl: SELLER, base: BASE, route: 'nobody' }, { forced: true }, 'forced'],
    [{ agentUrl: SELLER, base: BASE, route: 'nobody' }, { force: 1 }, 'force'],
  ])('%j %j is refused', async (url, how, message) => {
    await expect(process().registrations.retire(url as never, how as never)).rejects.toMatchObject({
      code: 'request_invalid',
      message: expect.stringContaining(message) as string,
    });
  });
});
