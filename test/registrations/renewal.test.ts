import { randomUUID } from 'node:crypto';
import { afterEach, describe, expect, it } from 'vitest';
import type { Registrations } from '../../src/registrations/index.ts';
import { bearerDelivery, signHmac } from '../../src/sender/sign.ts';
import { LONG } from '../reliability/form.ts';
import { NEWEST, OLDER } from './kit.ts';
import {
  AGENT,
  allSteps,
  type Bought,
  type Config,
  DAY,
  HOUR,
  isMoved,
  MINUTE,
  mortalProcess,
  movingWorld,
  type MovingWorld,
  NEW,
  OLD,
  passUntil,
  passWithout,
  type Process,
  type SellerBuy,
  SECOND,
} from './moving-seller.ts';

let world: MovingWorld;
afterEach(async () => world.end());

const RENEW = { renew: true } as const;
const secretIn = (config: Config | undefined): string =>
  (config?.['authentication'] as { readonly credentials?: string } | undefined)?.credentials ?? '';

/** A media buy whose reports come by HMAC, 31 days ago. */
async function agedBuy(of: Bought = {}, count = 1): Promise<Process> {
  world = movingWorld();
  const process = await world.process({ baseUrl: OLD });
  for (let i = 1; i <= count; i += 1) await world.buy(process, `buy-${i}`, of);
  await world.clock.pass(31 * DAY);
  return process;
}

/** A report by a URL under a secret. */
async function report(
  { receiver }: Process,
  id: string,
  {
    url,
    secret,
    scheme = 'HMAC-SHA256',
  }: { readonly url: string; readonly secret: string; readonly scheme?: string },
) {
  const end = new Date(Math.floor(Date.now() / DAY) * DAY);
  const delivery = {
    media_buy_id: id,
    status: 'active',
    totals: { impressions: 1, spend: 1 },
    by_package: [],
  };
  const body = JSON.stringify({
    idempotency_key: randomUUID(),
    task_id: id,
    task_type: 'media_buy_delivery',
    status: 'completed',
    timestamp: new Date(Date.now()).toISOString(),
    result: {
      notification_type: 'scheduled',
      sequence_number: 1,
      reporting_period: { start: new Date(end.getTime() - DAY).toISOString(), end: end.toISOString() },
      currency: 'USD',
      media_buy_deliveries: [delivery],
    },
  });
  const sent =
    scheme === 'Bearer' ? bearerDelivery({ url, token: secret, body }) : signHmac({ url, secret, body });
  return receiver.verifyAndDispatch(sent.body, { ...sent.headers, host: new URL(url).host }, { url });
}

/** What deliveries to a URL are verified by. */
const authAt = async ({ senders }: Registrations, url: unknown) =>
  (await senders(new URL(String(url)))).map(({ auth }) => auth);

describe('a renewal (told.md §5)', () => {
  it('moves a media buy to a new route, and both routes take both secrets', async () => {
    const process = await agedBuy();
    const other = await world.process({ baseUrl: OLD });
    const before = structuredClone(world.seller.buy('buy-1'));
    await process.start();
    const plan = await process.registrations.plan(RENEW);
    expect(plan.steps).toMatchObject([
      { mediaBuyId: 'buy-1', state: 'planned', from: [{ channel: 'reports', scheme: 'HMAC-SHA256' }] },
    ]);
    await process.registrations.apply(plan);
    await passUntil(world, () => isMoved(process, RENEW));
    const after = world.seller.buy('buy-1');
    expect(after.push?.url).toBe(before.push?.url);
    expect(after.reports?.url).not.toBe(before.reports?.url);
    expect(after.reports?.url).toMatch(new RegExp(`^${OLD}/[\\w-]{48}$`));
    const [old, fresh] = [secretIn(before.reports), secretIn(after.reports)];
    expect(fresh).toMatch(/^[\w-]{43}$/);
    expect(fresh).not.toBe(old);
    for (const { registrations } of [process, other]) {
      expect(await authAt(registrations, before.reports?.url)).toEqual([
        { reports: { secret: old, previousSecret: fresh } },
      ]);
      expect(await authAt(registrations, after.reports?.url)).toEqual([
        { reports: { secret: fresh, previousSecret: old } },
      ]);
    }
    expect(world.seller.updates()).toHaveLength(1);
    expect(await allSteps(process)).toEqual([]);
  });

  it('has nothing to do before credentials are old, nor for signed routes', async () => {
    world = movingWorld();
    const process = await world.process({ baseUrl: OLD });
    await world.buy(process, 'buy-1');
    await world.buy(process, 'buy-2', { reporting: { frequency: 'daily', scheme: 'signature' } });
    await world.clock.pass(29 * DAY);
    expect(await isMoved(process, RENEW)).toBe(true);
    await world.clock.pass(2 * DAY);
    expect((await allSteps(process, RENEW)).map(({ mediaBuyId }) => mediaBuyId)).toEqual(['buy-1']);
    const due = async (): Promise<readonly unknown[]> =>
      (await process.registrations.state()).urls.flatMap(({ scheme, renewalDue }) =>
        renewalDue ? scheme : [],
      );
    expect(await due()).toEqual(['HMAC-SHA256']);
    await process.start();
    await process.registrations.apply(await process.registrations.plan(RENEW));
    expect(await due()).toEqual([]);
    await passUntil(world, () => isMoved(process, RENEW));
    expect(await due()).toEqual([]);
  });

  it.each(['HMAC-SHA256', 'Bearer'] as const)(
    'takes the route of both channels with it: %s',
    async (scheme) => {
      const process = await agedBuy({ scheme });
      const before = structuredClone(world.seller.buy('buy-1'));
      await process.start();
      await process.registrations.apply(await process.registrations.plan(RENEW));
      await passUntil(world, () => isMoved(process, RENEW));
      const { push, reports } = world.seller.buy('buy-1');
      expect(push?.url).toBe(reports?.url);
      expect(push?.url).not.toBe(before.push?.url);
      expect(secretIn(push)).toBe(secretIn(reports));
      const [auth] = await authAt(process.registrations, before.push?.url);
      expect(JSON.stringify(auth)).toContain(secretIn(push));
      expect(JSON.stringify(auth)).toContain(secretIn(before.push));
    },
  );

  it('tells no seller for twice the time for which routes are cached', async () => {
    const process = await agedBuy();
    const before = secretIn(world.seller.buy('buy-1').reports);
    await process.start();
    await process.registrations.apply(await process.registrations.plan(RENEW));
    await world.clock.pass(19 * SECOND);
    expect(world.seller.updates()).toEqual([]);
    await world.buy(process, 'buy-2');
    expect(secretIn(world.seller.buy('buy-2').reports)).toBe(before);
    await passUntil(world, () => world.seller.updates().length > 0);
    await world.buy(process, 'buy-3');
    const fresh = secretIn(world.seller.buy('buy-3').reports);
    expect(fresh).not.toBe(before);
    // What was told the former ones meanwhile is a step, too.
    expect((await allSteps(process, RENEW)).map(({ mediaBuyId }) => mediaBuyId)).toContain('buy-2');
    await process.registrations.apply(await process.registrations.plan(RENEW));
    await passUntil(world, () => isMoved(process, RENEW));
    expect(secretIn(world.seller.buy('buy-2').reports)).toBe(fresh);
  });

  it('is one at a time, by any number of processes', async () => {
    const process = await agedBuy({}, 3);
    const other = await world.process({ baseUrl: OLD });
    await Promise.all([process.start(), other.start()]);
    const plans = await Promise.all([process, other].map(({ registrations }) => registrations.plan(RENEW)));
    await Promise.all(
      [process, other].map(({ registrations }, i) => registrations.apply(plans[i] ?? { to: {}, steps: [] })),
    );
    await passUntil(world, () => isMoved(process, RENEW));
    const secrets = [...world.seller.buys.values()].map(({ reports }) => secretIn(reports));
    expect(new Set(secrets).size).toBe(1);
    expect(world.seller.updates()).toHaveLength(3);
  });

  it('repeats a call with the credentials of its first attempt', async () => {
    const process = await agedBuy({ scheme: 'HMAC-SHA256' });
    const made = await process.registrations.create({
      agentUrl: AGENT,
      taskType: 'update_media_buy',
      scheme: 'HMAC-SHA256',
      arguments: { media_buy_id: 'buy-1' },
    });
    const first = made.toolArguments['push_notification_config'];
    await process.registrations.apply(await process.registrations.plan(RENEW));
    await world.clock.pass(MINUTE);
    await world.buy(process, 'buy-2', { scheme: 'HMAC-SHA256' });
    await process.start();
    await passUntil(world, () => world.seller.updates().some((args) => !('reporting_webhook' in args)));
    const [repeated] = world.seller.updates().filter((args) => !('reporting_webhook' in args));
    expect(repeated?.['push_notification_config']).toEqual(first);
    expect(secretIn(world.seller.buy('buy-2').push)).not.toBe(secretIn(first as Config));
  });

  it('repeats no call whose URL was retired by force: it would be told as one that is signed', async () => {
    const process = await agedBuy({ scheme: 'HMAC-SHA256' });
    const made = await process.registrations.create({
      agentUrl: AGENT,
      taskType: 'update_media_buy',
      scheme: 'HMAC-SHA256',
      arguments: { media_buy_id: 'buy-1' },
    });
    for (const { base, route } of await hmacUrls(process)) {
      await process.registrations.retire({ agentUrl: AGENT, base, route }, { force: true });
    }
    await process.start();
    await world.clock.pass(10 * MINUTE);
    expect(world.seller.updates()).toEqual([]);
    expect(await process.registrations.get(made)).toMatchObject({
      state: 'orphaned',
      reason: expect.stringContaining('were retired') as string,
    });
    expect(process.alarms.filter(({ code }) => code === 'operation_orphaned')).toMatchObject([
      {
        operationId: made.operationId,
        message:
          'It is unknown whether update_media_buy was done: the call was not answered, and cannot be repeated: the credentials of the URL that it named were retired. Ask the seller.',
      },
    ]);
  });

  it('is done by start where it is automatic, every 30 days', async () => {
    const process = await agedBuy();
    const auto = await world.process({ baseUrl: OLD, more: { renew: 'auto' } });
    const before = secretIn(world.seller.buy('buy-1').reports);
    await auto.start();
    await passUntil(world, () => world.seller.updates().length > 0);
    await passUntil(world, () => isMoved(process, RENEW));
    expect(world.seller.updates()).toHaveLength(1);
    expect(secretIn(world.seller.buy('buy-1').reports)).not.toBe(before);
    await world.clock.pass(3 * 3_600_000);
    expect(world.seller.updates()).toHaveLength(1);
  });

  it('goes on where a process has died between its steps', async () => {
    const process = await agedBuy();
    const { store } = world.opened();
    let left = 0;
    // It dies at its n-th step of the store: what follows never comes back.
    for (let diesAt = 0; diesAt < 12; diesAt += 1) {
      left = diesAt;
      const rows = store.registrations;
      if (!rows) throw new Error('the store has registrations');
      const run: typeof rows.run = (sender, plan) => {
        left -= 1;
        return left < 0 ? new Promise(() => {}) : rows.run(sender, plan);
      };
      const mortal = await world.process({
        baseUrl: OLD,
        store: { ...store, registrations: { ...rows, run } },
      });
      left = diesAt;
      void mortal.registrations.plan(RENEW).then((plan) => mortal.registrations.apply(plan));
      await world.clock.settled();
      left = Infinity;
    }
    await process.start();
    await process.registrations.apply(await process.registrations.plan(RENEW));
    await passUntil(world, () => isMoved(process, RENEW));
    expect(await isMoved(process, RENEW)).toBe(true);
    expect(world.seller.updates()).toHaveLength(1);
    const { reports } = world.seller.buy('buy-1');
    expect(JSON.stringify(await authAt(process.registrations, reports?.url))).toContain(secretIn(reports));
  });

  it('does not keep a former URL from being retired by force, wherever it stopped', async () => {
    let begun = 0;
    for (let diesAt = 0; diesAt < 12; diesAt += 1) {
      const process = await agedBuy();
      const before = structuredClone(world.seller.buy('buy-1').reports);
      const { process: mortal } = await mortalProcess(world, diesAt, { baseUrl: OLD });
      void mortal.registrations.plan(RENEW).then((plan) => mortal.registrations.apply(plan));
      await world.clock.settled();
      const { rows = [] } =
        (await world.opened().store.registrations?.page({ kind: 'route', sender: AGENT, limit: 9 })) ?? {};
      if (rows.some(({ value }) => value.includes('"next":'))) begun += 1;
      const [{ base, route } = expect.fail('no URL')] = await hmacUrls(process);
      await process.registrations.retire({ agentUrl: AGENT, base, route }, { force: true });
      expect(await statusOf(process, before)).toBe(503);
      await world.end();
    }
    expect(begun).toBeGreaterThan(2);
  });

  it('refuses no authentic delivery, whichever URL and secret a seller uses meanwhile', async () => {
    const process = await agedBuy({}, 4);
    const other = await world.process({ baseUrl: OLD });
    await Promise.all([process.start(), other.start()]);
    for (const buy of world.seller.buys.values()) buy.manner = 'late';
    const before = structuredClone(world.seller.buy('buy-1').reports);
    const statuses: number[] = [];
    let turn = 0;
    const deliver = async (): Promise<void> => {
      for (const { id, reports } of world.seller.buys.values()) {
        const told = [...world.seller.buys.values()].map((one) => one.reports);
        // A seller may keep one secret for all URLs of a buyer, and an old URL for a while.
        const [url = '', ...more] = [reports?.url, before?.url, ...told.map((one) => one?.url)] as string[];
        const urls = [url, ...more];
        const secrets = [reports, before, ...told].map(secretIn);
        turn += 1;
        const at = turn % 2 === 0 ? process : other;
        const sent = { url: urls[turn % urls.length] ?? url, secret: secrets[turn % 3] ?? '' };
        const outcome = await report(at, id, sent);
        statuses.push(outcome.response.status);
      }
    };
    await process.registrations.apply(await process.registrations.plan(RENEW));
    await passUntil(world, async () => {
      await deliver();
      return isMoved(process, RENEW);
    });
    for (let i = 0; i < 5; i += 1) await deliver();
    expect(statuses.length).toBeGreaterThan(40);
    expect(statuses.filter((status) => status >= 300)).toEqual([]);
    const wrong = await report(process, 'buy-1', { url: String(before?.url), secret: 'x'.repeat(43) });
    expect(wrong.response.status).toBe(401);
  });

  it('ends with the former URL: retired, its credentials count nowhere', async () => {
    const process = await agedBuy();
    const before = structuredClone(world.seller.buy('buy-1').reports);
    await process.start();
    await process.registrations.apply(await process.registrations.plan(RENEW));
    await passUntil(world, () => isMoved(process, RENEW));
    const { urls } = await process.registrations.state({ agentUrl: AGENT });
    const [former, ...more] = urls
      .filter(({ scheme }) => scheme === 'HMAC-SHA256')
      .toSorted((a, b) => a.givenAt - b.givenAt);
    expect(more).toHaveLength(1);
    const { base = '', route = '' } = former ?? {};
    await expect(process.registrations.retire({ agentUrl: AGENT, base, route })).rejects.toMatchObject({
      code: 'url_in_use',
    });
    await process.registrations.retire({ agentUrl: AGENT, base, route }, { force: true });
    await world.clock.pass(11 * SECOND);
    const { reports } = world.seller.buy('buy-1');
    expect(await authAt(process.registrations, reports?.url)).toEqual([
      { reports: { secret: secretIn(reports) } },
    ]);
    expect(await statusOf(process, before)).toBe(503);
    expect(await statusOf(process, reports)).toBe(200);
  });

  it.each([[[OLD]], [[NEW, OLD]]])(
    'takes the credentials of what is told from the former one when that is retired, below %j',
    async (baseUrl) => {
      const process = await agedBuy();
      const before = structuredClone(world.seller.buy('buy-1').reports);
      await process.start();
      await process.registrations.apply(await process.registrations.plan(RENEW));
      await passUntil(world, () => isMoved(process, RENEW));
      const { reports } = world.seller.buy('buy-1');
      await passWithout(world, [process], MINUTE);
      const other = await world.process({ baseUrl });
      const newest = (await hmacUrls(other)).toSorted((a, b) => b.givenAt - a.givenAt)[0];
      await other.registrations.retire(newest ?? expect.fail('no URL'), { force: true });
      await world.clock.pass(11 * SECOND);
      expect(await accepted(other, before)).toEqual([secretIn(before)]);
      expect(await statusOf(other, { ...before, authentication: reports?.['authentication'] })).toBe(503);
      // What is told next has the former one for its own: it goes when it is quiet.
      await world.buy(other, 'buy-2');
      const fresh = world.seller.buy('buy-2').reports;
      expect(await accepted(other, fresh)).toEqual([secretIn(fresh)]);
      expect(secretIn(fresh)).not.toBe(secretIn(reports));
      const { steps } = await other.registrations.plan();
      expect(steps).toMatchObject([{ mediaBuyId: 'buy-1', state: 'planned' }]);
      await other.start();
      await other.registrations.apply(await other.registrations.plan());
      await passUntil(world, () => isMoved(other));
      for (const id of ['buy-1', 'buy-2']) {
        const sent = { url: String(fresh?.url), secret: secretIn(fresh) };
        expect((await report(other, id, sent)).response.status).toBe(200);
      }
      await passWithout(world, [other], 40 * DAY);
      await other.start();
      await world.clock.pass(2 * HOUR);
      expect(await statusOf(other, before)).toBe(503);
    },
  );

  it('is rewrapped with the rest, in the middle of it too', async () => {
    world = movingWorld();
    const more = (secrets: readonly string[]) => ({ baseUrl: OLD, more: { secrets } });
    const old = await world.process(more([OLDER]));
    await world.buy(old, 'buy-1');
    const before = secretIn(world.seller.buy('buy-1').reports);
    await world.clock.pass(31 * DAY);
    await old.registrations.apply(await old.registrations.plan(RENEW));
    const both = await world.process(more([NEWEST, OLDER]));
    const { damaged } = await both.registrations.rewrap();
    expect(damaged).toBe(0);
    await both.start();
    await passUntil(world, () => isMoved(both, RENEW));
    const after = await world.process(more([NEWEST, OLDER]));
    expect((await after.registrations.rewrap()).rewrapped).toBe(0);
    const { reports } = world.seller.buy('buy-1');
    expect(await accepted(after, reports)).toEqual([secretIn(reports), before]);
    // Whose the others are is known still, when they are retired.
    const former = (await hmacUrls(after)).find(({ givenAt }) => givenAt < Date.now() - DAY);
    await after.registrations.retire(former ?? expect.fail('no former URL'), { force: true });
    await world.clock.pass(11 * SECOND);
    expect(await accepted(after, reports)).toEqual([secretIn(reports)]);
    // The older secret may be removed once each URL that it made is retired: signed ones too.
    expect((await after.registrations.rewrap()).needed).toBe(2);
    for (const url of (await after.registrations.state()).urls) {
      await after.registrations.retire(url, { force: true });
    }
    expect((await after.registrations.rewrap()).needed).toBe(0);
    const { registrations } = await world.process(more([NEWEST]));
    await registrations.ready();
  });
});

/** A renewal that is done, and what the seller had before. */
async function renewedBuy(of: Bought = {}): Promise<{
  readonly process: Process;
  readonly before: Pick<SellerBuy, 'reports' | 'push'>;
}> {
  const process = await agedBuy(of);
  const { reports, push } = world.seller.buy('buy-1');
  const before = structuredClone({ reports, push });
  await process.start();
  await process.registrations.apply(await process.registrations.plan(RENEW));
  await passUntil(world, () => isMoved(process, RENEW));
  return { process, before };
}

const sentStatus = async (process: Process, sent: Parameters<typeof report>[2]): Promise<number> =>
  (await report(process, 'buy-1', sent)).response.status;

const statusOf = (process: Process, config: Config | undefined): Promise<number> =>
  sentStatus(process, { url: String(config?.url), secret: secretIn(config) });

/** Credentials under which deliveries to a URL are accepted. */
const accepted = async ({ registrations }: Process, config: Config | undefined): Promise<readonly string[]> =>
  (await authAt(registrations, config?.url)).flatMap((auth) =>
    Object.values(Object.values(auth ?? {})[0] as object),
  );

/** URLs with credentials that are told, or were, and their routes. */
const hmacUrls = async ({ registrations }: Process) =>
  (await registrations.state()).urls.filter(({ scheme }) => scheme === 'HMAC-SHA256');
const hmacRoutes = async (process: Process): Promise<readonly string[]> => [
  ...new Set((await hmacUrls(process)).map(({ route }) => route)),
];

describe('a former route (told.md §5.3)', () => {
  it('goes by itself when it is quiet, in any process, and not before', async () => {
    const { process, before } = await renewedBuy();
    const { reports } = world.seller.buy('buy-1');
    const other = await world.process({ baseUrl: OLD });
    expect(await statusOf(process, reports)).toBe(200);
    // Sent before the seller was told, and delivered late: it puts that off.
    await passWithout(world, [process], 20 * HOUR);
    expect(await statusOf(other, before.reports)).toBe(200);
    await world.clock.pass(20 * HOUR);
    await other.start();
    await world.clock.pass(10 * MINUTE);
    expect(await hmacRoutes(other)).toHaveLength(2);
    expect(await statusOf(process, before.reports)).toBe(200);
    await passWithout(world, [other], DAY + 10 * MINUTE);
    await other.start();
    await world.clock.pass(10 * MINUTE);
    expect(await hmacRoutes(other)).toHaveLength(1);
    for (const at of [process, other]) {
      expect(await statusOf(at, before.reports)).toBe(503);
      expect(await statusOf(at, reports)).toBe(200);
      // Nowhere does the former secret count.
      expect(await authAt(at.registrations, reports?.url)).toEqual([
        { reports: { secret: secretIn(reports) } },
      ]);
    }
    await world.clock.pass(SECOND);
    const alarms = [...process.alarms, ...other.alarms];
    expect(alarms.filter(({ code }) => code === 'retired_url_used')).toMatchObject([{ sender: AGENT }]);
  });

  it.each(['HMAC-SHA256', 'Bearer'] as const)(
    'keeps its credentials for a month and the horizon after a seller used them by the new URL: %s',
    async (scheme) => {
      const { process, before } = await renewedBuy({ scheme });
      const { push } = world.seller.buy('buy-1');
      // It takes the new URL, and keeps the one secret that it has for the buyer.
      const kept = { url: String(push?.url), secret: secretIn(before.push), scheme };
      expect(await sentStatus(process, kept)).toBe(200);
      for (const days of [20, 11]) {
        await passWithout(world, [process], days * DAY);
        await process.start();
        await world.clock.pass(10 * MINUTE);
        expect((await accepted(process, push)).length).toBe(2);
      }
      expect(await sentStatus(process, kept)).toBe(200);
      await passWithout(world, [process], 32 * DAY + 10 * MINUTE);
      await process.start();
      await world.clock.pass(10 * MINUTE);
      expect(await accepted(process, push)).toEqual([secretIn(push)]);
      // Its sender cannot know.
      expect(await sentStatus(process, kept)).toBe(503);
      expect(await sentStatus(process, { ...kept, secret: secretIn(push) })).toBe(200);
      await world.clock.pass(SECOND);
      expect(process.alarms.filter(({ code }) => code === 'retired_url_used')).toMatchObject([
        { sender: AGENT, message: expect.stringContaining('credentials') as string },
      ]);
    },
  );

  it('holds up the next renewal: no third route takes the credentials of two', async () => {
    const process = await agedBuy({}, 2);
    world.seller.buy('buy-2').manner = 'refuses';
    const before = structuredClone(world.seller.buy('buy-1').reports);
    await process.start();
    const renew = async () => process.registrations.apply(await process.registrations.plan(RENEW));
    await renew();
    await passUntil(world, () => world.seller.updates().length === 2);
    const { reports } = world.seller.buy('buy-1');
    const taken = [reports, before].map(secretIn);
    await passWithout(world, [process], 31 * DAY);
    // The plan says so, too: whoever renews by itself leaves such a step.
    expect((await process.registrations.plan(RENEW)).steps).toMatchObject([
      { mediaBuyId: 'buy-1', state: 'planned', reason: expect.stringContaining('not over') as string },
      { mediaBuyId: 'buy-2' },
    ]);
    const { steps } = await renew();
    expect(steps).toMatchObject([
      { mediaBuyId: 'buy-1', state: 'planned', reason: expect.stringContaining('not over') as string },
      { mediaBuyId: 'buy-2', state: 'waiting' },
    ]);
    expect(await accepted(process, reports)).toEqual(taken);
    expect(await accepted(process, before)).toEqual(taken.toReversed());
    // It ends with the former one.
    world.seller.buy('buy-2').manner = 'done';
    await process.start();
    await renew();
    await passUntil(world, () => isMoved(process));
    for (const id of ['buy-1', 'buy-2']) {
      const sent = { url: String(reports?.url), secret: secretIn(reports) };
      expect((await report(process, id, sent)).response.status).toBe(200);
    }
    await passWithout(world, [process], 2 * DAY);
    await process.start();
    await world.clock.pass(MINUTE);
    await renew();
    await passUntil(world, () => world.seller.buy('buy-1').reports?.url !== reports?.url);
    expect(await accepted(process, reports)).toContain(secretIn(world.seller.buy('buy-1').reports));
  });

  it('stays for as long as a media buy is on it', async () => {
    const { process, before } = await renewedBuy();
    await passWithout(world, [process], 5 * DAY);
    await process.start();
    await world.clock.pass(2 * HOUR);
    expect(await hmacRoutes(process)).toHaveLength(2);
    expect(await statusOf(process, before.reports)).toBe(200);
  });

  /** A URL that nobody is recorded on, and the one that took its place. */
  async function unrecorded() {
    world = movingWorld();
    const process = await world.process({ baseUrl: OLD });
    const told = async (): Promise<Config> =>
      process.registrations.reportingWebhook({ agentUrl: AGENT }, { frequency: 'daily' });
    const before = await told();
    await world.clock.pass(31 * DAY);
    const auto = await world.process({ baseUrl: OLD, more: { renew: 'auto' } });
    await auto.start();
    await world.clock.pass(2 * HOUR);
    return { process, auto, before, after: await told() };
  }

  it('goes where nobody was ever on it, once the new URL was heard under its own credentials', async () => {
    const { process, before, after } = await unrecorded();
    expect(await accepted(process, after)).toEqual([secretIn(after), secretIn(before)]);
    expect(await statusOf(process, after)).toBe(200);
    await world.clock.pass(2 * HOUR);
    expect(await hmacRoutes(process)).toHaveLength(1);
    const { rows = [] } =
      (await world.opened().store.registrations?.page({ kind: 'route', sender: '', limit: 9 })) ?? {};
    expect(rows.filter(({ value }) => value.includes('sealed'))).toHaveLength(1);
  });

  it('keeps its credentials for a month and the horizon where the new URL was not heard under its own', async () => {
    const { process, auto, before, after } = await unrecorded();
    for (const days of [20, 11, 2]) {
      // The seller's one secret may still be the former one.
      expect(await accepted(process, after)).toEqual([secretIn(after), secretIn(before)]);
      await passWithout(world, [process, auto], days * DAY);
      await process.start();
      await world.clock.pass(10 * MINUTE);
    }
    expect(await accepted(process, after)).toEqual([secretIn(after)]);
  });

  it('counts no more in the process that ends what another one died of, whatever it has cached', async () => {
    const { process, before } = await renewedBuy();
    expect(await statusOf(process, world.seller.buy('buy-1').reports)).toBe(200);
    await passWithout(world, [process], 2 * DAY);
    const former = (await hmacUrls(process)).toSorted((a, b) => a.givenAt - b.givenAt)[0];
    const { agentUrl, base, route } = former ?? expect.fail('no former URL');
    const isMarked = async (): Promise<boolean> =>
      (await hmacUrls(process)).some((url) => url.route === route && url.retiredAt !== undefined);
    for (let diesAt = 0; !(await isMarked()); diesAt += 1) {
      const { process: mortal } = await mortalProcess(world, diesAt, { baseUrl: OLD });
      void mortal.registrations.retire({ agentUrl, base, route }, { force: true });
      await world.clock.settled();
    }
    const kept = async (): Promise<boolean> =>
      (await world.opened().store.registrations?.run('', (rows) => rows.get('route', route)))?.value.includes(
        '"sealed":',
      ) === true;
    expect(await kept()).toBe(true);
    expect(await accepted(process, before.reports)).toContain(secretIn(before.reports));
    await process.registrations.start();
    await world.clock.pass(SECOND);
    expect(await kept()).toBe(false);
    expect(await authAt(process.registrations, before.reports?.url)).toEqual([undefined]);
  });

  it('goes wherever a process dies while it retires it', async () => {
    const { process, before } = await renewedBuy();
    const { reports } = world.seller.buy('buy-1');
    expect(await statusOf(process, reports)).toBe(200);
    await passWithout(world, [process], 2 * DAY);
    let deaths = 0;
    for (let diesAt = 0; diesAt < 60; diesAt += LONG ? 1 : 3) {
      const { process: mortal, life } = await mortalProcess(world, diesAt, { baseUrl: OLD });
      void mortal.registrations.start();
      // The turn of the seller comes again in an hour.
      await world.clock.pass(HOUR + MINUTE);
      if (!life.isOver()) break;
      deaths += 1;
    }
    expect(deaths).toBeGreaterThan(4);
    const heir = await world.process({ baseUrl: OLD });
    await heir.start();
    await world.clock.pass(2 * HOUR);
    expect(await hmacRoutes(heir)).toHaveLength(1);
    expect(await statusOf(heir, before.reports)).toBe(503);
    expect(await statusOf(heir, reports)).toBe(200);
    expect(await authAt(heir.registrations, reports?.url)).toEqual([
      { reports: { secret: secretIn(reports) } },
    ]);
  });
});
