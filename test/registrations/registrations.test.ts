import { randomBytes, randomUUID } from 'node:crypto';
import { afterEach, beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { webhookHandler } from '../../src/adapters/node.ts';
import {
  ConfigError,
  createReceiver,
  type EditionName,
  type Receiver,
  type ReceiverOptions,
} from '../../src/index.ts';
import type { Event } from '../../src/events/index.ts';
import {
  type CallSeller,
  createRegistrations,
  type JsonObject,
  type Registrations,
} from '../../src/registrations/index.ts';
import { mcpCaller } from '../../src/registrations/mcp.ts';
import { registrationsOf } from '../../src/registrations/for-tests.ts';
import { memoryStore } from '../../src/stores/memory.ts';
import { createMemoryState } from '../../src/stores/for-tests.ts';
import { createFakeSeller, type FakeSeller } from '../../src/testing/index.ts';
import { listening, type Listening } from '../adapters/raw-client.ts';
import { hashes, NEWEST, OLDER } from './kit.ts';
import { anyClient, callBy, startBy } from '../support/any-client.ts';

const silent = { debug() {}, info() {}, warn() {}, error() {} };
const parts = {
  hashes,
  randomBytes: (count: number): Uint8Array => new Uint8Array(randomBytes(count)),
  newId: () => randomUUID(),
  now: () => performance.now(),
  sleep: async () => {},
};

let state: ReturnType<typeof createMemoryState>;
beforeEach(() => {
  state = createMemoryState();
});

const process = (baseUrl: string, secrets = [NEWEST], store = memoryStore({ state })): Registrations =>
  registrationsOf({ store, call: anyClient, baseUrl, secrets, allowLoopback: true }, parts);

it('open operations of a seller are 10 000 at most where maxOpen is not said', async () => {
  const store = memoryStore({ state });
  const rows = store.registrations ?? expect.fail('memory has them');
  const sender = 'https://seller.example/mcp';
  const value = '';
  const row = {
    kind: 'operation',
    sender,
    id: 'open',
    value,
    dueAt: null,
    list: 'open',
    expiresAt: null,
  } as const;
  const withOpen = (open: number): Registrations => {
    const page: typeof rows.page = async ({ list }) => ({
      rows: list === 'open' ? Array.from({ length: open }, () => row) : [],
    });
    const crowded = { ...store, registrations: { ...rows, page } };
    return process('https://buyer.example/webhooks', [NEWEST], crowded);
  };
  const request = { agentUrl: sender, taskType: 'create_media_buy', arguments: {} };
  await withOpen(9_999).create(request);
  await expect(withOpen(10_000).create(request)).rejects.toThrow(`10000 operations of ${sender}`);
});

it('rows are read page by page to the last one, whatever a store gives in one', async () => {
  const store = memoryStore({ state });
  const rows = store.registrations ?? expect.fail('memory has them');
  const page: typeof rows.page = (query) => rows.page({ ...query, limit: 1 });
  const paged = { ...store, registrations: { ...rows, page } };
  const base = 'https://buyer.example/webhooks';
  const sellers = ['a', 'b', 'c'].map((name) => `https://${name}.example/mcp`);
  const [first = ''] = sellers;
  const request = { taskType: 'create_media_buy', arguments: {}, scheme: 'Bearer' } as const;
  const before = process(base, [OLDER], paged);
  for (const agentUrl of sellers) {
    await before.create({ agentUrl, ...request });
    await before.adopt({ agentUrl, url: `${base}/${new URL(agentUrl).host}` });
  }
  await expect(process(base, [NEWEST], paged).ready()).rejects.toThrow(/3 URLs .* and 3 calls/);
  const both = process(base, [NEWEST, OLDER], paged);
  expect(await both.rewrap()).toMatchObject({ rewrapped: 6, needed: 3 });
  for (const agentUrl of sellers) {
    expect(await both.senders(new URL(`${base}/${new URL(agentUrl).host}`))).toEqual([{ agentUrl }]);
  }
  await both.create({ agentUrl: first, ...request });
  await both.reportingWebhook({ agentUrl: first }, { frequency: 'daily' });
  await both.forget(first);
  const kept = await Promise.all(
    (['route', 'operation'] as const).map((kind) => rows.page({ kind, limit: 100 })),
  );
  const senders = kept.map((found) => found.rows.filter(({ value }) => value.includes(first)));
  expect(senders).toEqual([[], []]);
});

describe('a receiver that has them', () => {
  const make = (options: Partial<ReceiverOptions>): Receiver => {
    const store = memoryStore();
    const registrations = process('https://Buyer.example:443/webhooks/', [NEWEST], store);
    const { publicUrl, senders } = registrations;
    const theirs = { publicUrl, senders, store, registrations, handlers: { other: () => undefined } };
    return createReceiver({ ...theirs, ...options });
  };
  const elsewhere = process('https://buyer.example/webhooks', [NEWEST], memoryStore());

  it('has their store', () => {
    expect(() => make({ store: memoryStore() })).toThrow(ConfigError);
    expect(() => make({ store: memoryStore() })).toThrow(
      /^store: is not the store of registrations.* Give the same one to createReceiver and createRegistrations/,
    );
  });

  it('has their senders, or a list or function of its own', () => {
    expect(() => make({ senders: elsewhere.senders })).toThrow(
      /^senders: are those of other registrations\. Leave the option out/,
    );
    const senders = [{ agentUrl: 'https://seller.example/mcp' }];
    expect(() => make({ senders, publicUrl: 'https://buyer.example/other' })).not.toThrow();
    expect(() => make({ senders: () => senders, publicUrl: 'https://buyer.example/other' })).not.toThrow();
  });

  it.each(['https://buyer.example/webhooks/*', 'https://buyer.example/*'])('is at %s', (publicUrl) => {
    expect(() => make({ publicUrl })).not.toThrow();
  });

  it.each([
    'https://buyer.example/webhooks',
    'https://buyer.example/webhook/*',
    'https://buyer.example/webhooks/proto/*',
    'https://other.example/webhooks/*',
  ])('cannot be at %s', (publicUrl) => {
    expect(() => make({ publicUrl })).toThrow(
      'publicUrl: does not cover https://buyer.example/webhooks/*, to which sellers are asked to send. Leave the option out: registrations bring theirs.',
    );
  });
});

describe('with a receiver and a seller', () => {
  let server: Listening;
  let seller: FakeSeller;
  let receiver: Receiver;
  let registrations: Registrations;
  let handled: Event[];

  beforeEach(async () => {
    handled = [];
    const late: { receiver?: Receiver } = {};
    server = await listening((req, res) => late.receiver && webhookHandler(late.receiver)(req, res));
    seller = await createFakeSeller({ retry: { attempts: 1 } });
    const store = memoryStore({ state });
    registrations = process(`${server.url}/webhooks`, [NEWEST], store);
    receiver = createReceiver({
      registrations,
      store,
      durability: { require: 'process' },
      allowLoopback: true,
      logger: silent,
      handlers: { other: (event) => void handled.push(event) },
    });
    late.receiver = receiver;
  });
  afterEach(async () => {
    await seller.close();
    await receiver.stop();
    await server[Symbol.asyncDispose]();
  });

  const request = { taskType: 'create_media_buy', arguments: { budget: 1 } } as const;
  const who = () => ({ agentUrl: seller.agentUrl, brandJsonUrl: seller.brandJsonUrl });

  it('a receiver with their senders needs the registrations too: an answer would reach no handler', () => {
    const { publicUrl, senders } = registrations;
    const make = (): Receiver =>
      createReceiver({
        publicUrl,
        senders,
        store: memoryStore(),
        allowLoopback: true,
        handlers: { other: () => undefined },
      });
    expect(make).toThrow(/^registrations: missing, but senders is theirs.* Give both/);
  });

  it('a task’s webhook goes to the URL that the call has told, and is handled; to no other', async () => {
    const registration = await registrations.create({ ...who(), ...request });
    let told: { url?: string; operation_id?: string } = {};
    await callBy(registration, async (agentUrl, operation, args) => {
      expect([agentUrl, operation]).toEqual([seller.agentUrl, 'create_media_buy']);
      told = args['push_notification_config'] as typeof told;
      return { status: 'submitted', task_id: 'task-1' };
    });
    expect(await registrations.get(registration)).toMatchObject({ state: 'open', taskId: 'task-1' });
    const payload = seller.payloads.tool('completed', { task_id: 'task-1', operation_id: told.operation_id });
    const { last } = await seller.deliver(payload, { url: told.url ?? '' });
    expect(last).toMatchObject({ status: 200 });
    expect(handled).toMatchObject([{ operationId: registration.operationId, taskId: 'task-1' }]);
    const wrong = await seller.deliver(seller.payloads.tool('completed'), {
      url: `${told.url?.slice(0, -4)}AAAA`,
    });
    expect(wrong.last).toMatchObject({ status: 401 });
    expect(handled).toHaveLength(1);
  });

  it('a seller that is added while the receiver runs is one call away, and forgotten by another', async () => {
    const { url } = (await registrations.reportingWebhook(who(), { frequency: 'daily' })) as { url: string };
    expect((await seller.deliver(seller.payloads.report(), { url })).last).toMatchObject({ status: 200 });
    await registrations.forget(seller.agentUrl);
    expect((await seller.deliver(seller.payloads.report(), { url })).last).toMatchObject({ status: 401 });
  });

  it('what is signed is accepted at a URL that was retired, and it is told; the next call has another one', async () => {
    const urlOf = async (): Promise<string> => {
      const { toolArguments } = await registrations.create({ ...who(), ...request });
      return (toolArguments['push_notification_config'] as { url: string }).url;
    };
    const url = await urlOf();
    const [known] = (await registrations.state()).urls;
    await registrations.retire(known ?? expect.fail('a URL'), { force: true });
    expect((await seller.deliver(seller.payloads.tool('completed'), { url })).last).toMatchObject({
      status: 200,
    });
    expect(handled).toHaveLength(1);
    expect(await urlOf()).not.toBe(url);
    await receiver.stop();
    const rows = await memoryStore({ state }).registrations?.page({ kind: 'route', list: 'url', limit: 9 });
    const kept = (rows?.rows ?? []).map(({ value }) => JSON.parse(value) as Record<string, unknown>);
    expect(kept.filter((one) => 'usedAlarmAt' in one).map((one) => one['route'])).toEqual([known?.route]);
  });

  it('begun work that its seller does not name is an alarm, once, and no other begun work is', async () => {
    const alarms: { readonly code: string }[] = [];
    const made = createRegistrations({
      call: anyClient,
      store: memoryStore(),
      baseUrl: 'https://buyer.example/webhooks',
      secrets: [NEWEST],
      logger: silent,
      onAlarm: (alarm) => void alarms.push(alarm),
    });
    const begun = async (answer: object, ref: string): Promise<string> => {
      const one = await made.create({ agentUrl: 'https://seller.example/mcp', ...request, ref });
      await callBy(one, async () => answer);
      await one.settle(answer);
      return one.operationId;
    };
    await begun({ status: 'submitted', task_id: 'task-1' }, 'named');
    await begun({ status: 'completed', media_buy_id: 'mb-1' }, 'ended');
    expect(alarms).toEqual([]);
    const operationId = await begun({ status: 'submitted' }, 'order 7');
    expect(alarms).toEqual([
      {
        code: 'task_unresolved',
        sender: 'https://seller.example/mcp',
        operationId,
        taskType: 'create_media_buy',
        ref: 'order 7',
        message: expect.stringContaining('answers submitted without a task_id'),
      },
    ]);
    await begun({ status: 'input-required' }, 'order 8');
    expect(alarms).toMatchObject([{}, { code: 'task_unresolved', ref: 'order 8' }]);
    await made.stop();
  });

  it.each([false, true])(
    'lines go to the receiver’s logger where the registrations have none; own: %s',
    async (hasOwn) => {
      const lines: string[] = [];
      const own: string[] = [];
      const to = (list: string[]) => ({ ...silent, warn: (_: object, line: string) => void list.push(line) });
      const store = memoryStore();
      await using made = createRegistrations({
        call: async () => {
          throw new Error('the seller is down');
        },
        store,
        baseUrl: 'https://buyer.example/webhooks',
        secrets: [NEWEST],
        callMs: 1,
        ...(hasOwn && { logger: to(own) }),
      });
      await using receiver = createReceiver({
        publicUrl: made.publicUrl,
        senders: made.senders,
        registrations: made,
        store,
        durability: { require: 'process' },
        logger: to(lines),
        handlers: { other: () => {} },
      });
      await receiver.ready();
      await made.create({ agentUrl: 'https://seller.example/mcp', ...request });
      await made.start();
      const heard = hasOwn ? own : lines;
      await expect.poll(() => heard.join()).toContain('A call is repeated later: it was not answered.');
      expect(hasOwn ? lines.join() : own.join()).not.toContain('A call is repeated later');
      await made.stop();
    },
  );

  it('alarms of calls go to the receiver’s onAlarm where the registrations have none', async () => {
    const codes: string[] = [];
    const own: string[] = [];
    const withAlarms = (onAlarm?: (alarm: { code: string }) => void): Registrations => {
      const store = memoryStore();
      const made = createRegistrations({
        call: anyClient,
        store,
        baseUrl: 'https://buyer.example/webhooks',
        secrets: [NEWEST],
        callMs: 1,
        logger: silent,
        onAlarm,
      });
      const to = createReceiver({
        publicUrl: made.publicUrl,
        senders: made.senders,
        registrations: made,
        store,
        durability: { require: 'process' },
        logger: silent,
        handlers: { other: () => {} },
        onAlarm: ({ code }) => void codes.push(code),
      });
      onTestFinished(async () => {
        await made.stop();
        await to.stop();
      });
      return made;
    };
    const both = [withAlarms(), withAlarms(({ code }) => void own.push(code))];
    for (const made of both) {
      await made.create({ agentUrl: 'https://seller.example/mcp', ...request, requestKeyMs: 0 });
      void startBy(made, () => expect.fail('its key is over'));
    }
    await expect.poll(() => [codes, own]).toEqual([['operation_orphaned'], ['operation_orphaned']]);
  });

  interface Told {
    readonly url: string;
    readonly authentication?: { readonly schemes: readonly string[]; readonly credentials: string };
  }

  it('reports by HMAC with the credentials that every edition before 3.3 requires, or signed; no task by HMAC', async () => {
    const told = async (edition?: EditionName): Promise<Told> =>
      (await registrations.reportingWebhook(
        { ...who(), ...(edition && { edition }) },
        { frequency: 'daily' },
      )) as unknown as Told;
    const { url, authentication } = await told();
    expect(authentication).toEqual({
      schemes: ['HMAC-SHA256'],
      credentials: expect.stringMatching(/^[A-Za-z0-9_-]{43}$/),
    });
    for (const edition of ['3.0', '3.1', '3.2'] as const) {
      expect(await told(edition)).toMatchObject({ url, authentication });
    }
    const auth = { hmac: { secret: authentication?.credentials ?? '' } };
    const [byHmac, signed] = [seller.payloads.report(), seller.payloads.report()];
    expect((await seller.deliver(byHmac, { url, auth })).last).toMatchObject({ status: 200 });
    expect((await seller.deliver(signed, { url })).last).toMatchObject({ status: 200 });
    // The seller goes over to signatures between two attempts.
    expect((await seller.deliver(byHmac, { url })).last).toMatchObject({ status: 200 });
    expect(handled.map(({ kind, sender }) => [kind, sender])).toEqual([
      ['delivery-report', seller.agentUrl],
      ['delivery-report', seller.agentUrl],
    ]);
    const task = await seller.deliver(seller.payloads.tool('completed'), { url, auth });
    expect(task.last).toMatchObject({ status: 401 });
    // The credentials open no other URL of the seller.
    const registration = await registrations.create({ ...who(), ...request });
    const config = registration.toolArguments['push_notification_config'] as unknown as Told;
    expect(config.url).not.toBe(url);
    expect(config.authentication).toBeUndefined();
    const elsewhere = await seller.deliver(seller.payloads.report(), { url: config.url, auth });
    expect(elsewhere.last).toMatchObject({ status: 401 });
    expect(handled).toHaveLength(2);
  });

  it('signed reports alone where that is asked for', async () => {
    const reporting = { frequency: 'daily', scheme: 'signature' } as const;
    const { url, authentication } = (await registrations.reportingWebhook(
      who(),
      reporting,
    )) as unknown as Told;
    expect(authentication).toBeUndefined();
    const auth = { hmac: { secret: 'a-secret-that-nobody-was-ever-given' } };
    const { last } = await seller.deliver(seller.payloads.report(), { url, auth });
    expect(last).toMatchObject({ status: 401 });
    expect((await seller.deliver(seller.payloads.report(), { url })).last).toMatchObject({ status: 200 });
  });

  it('a seller that is known to speak 3.3 gets no credentials, and its reports have to be signed', async () => {
    const of = { ...who(), edition: '3.3' } as const;
    const { url, authentication } = (await registrations.reportingWebhook(of, {
      frequency: 'daily',
    })) as unknown as Told;
    expect(authentication).toBeUndefined();
    const auth = { hmac: { secret: 'a-secret-that-nobody-was-ever-given' } };
    const forged = await seller.deliver(seller.payloads.report(), { url, auth });
    expect(forged.last).toMatchObject({ status: 401 });
    expect((await seller.deliver(seller.payloads.report(), { url })).last).toMatchObject({ status: 200 });
  });

  it('the URL for reports is no scheme of a registration', async () => {
    const scheme = 'reports' as never;
    await expect(registrations.create({ ...who(), ...request, scheme })).rejects.toMatchObject({
      code: 'request_invalid',
    });
    await expect(registrations.reportingWebhook(who(), { frequency: 'daily', scheme })).rejects.toMatchObject(
      { code: 'request_invalid' },
    );
  });

  it('reports by legacy authentication alone, with the credentials that the call has told', async () => {
    const config = (await registrations.reportingWebhook(who(), {
      frequency: 'daily',
      scheme: 'HMAC-SHA256',
    })) as { url: string; authentication: { schemes: string[]; credentials: string } };
    expect(config.authentication.schemes).toEqual(['HMAC-SHA256']);
    const auth = { hmac: { secret: config.authentication.credentials } };
    const sent = await seller.deliver(seller.payloads.report(), { url: config.url, auth });
    expect(sent.last).toMatchObject({ status: 200 });
    await expect(
      registrations.reportingWebhook(who(), { frequency: 'daily', scheme: 'Basic' as never }),
    ).rejects.toMatchObject({ code: 'request_invalid' });
  });

  it('by legacy authentication with the credentials that the call has told', async () => {
    const registration = await registrations.create({ ...who(), ...request, scheme: 'HMAC-SHA256' });
    const config = registration.toolArguments['push_notification_config'] as {
      url: string;
      authentication: { schemes: string[]; credentials: string };
    };
    expect(config.authentication.schemes).toEqual(['HMAC-SHA256']);
    const auth = { hmac: { secret: config.authentication.credentials } };
    const sent = await seller.deliver(seller.payloads.tool('completed'), { url: config.url, auth });
    expect(sent.last).toMatchObject({ status: 200 });
    const other = { hmac: { secret: 'x'.repeat(43) } };
    const refused = await seller.deliver(seller.payloads.tool('completed'), { url: config.url, auth: other });
    expect(refused.last).toMatchObject({ status: 401 });
  });
});

describe('call', () => {
  const seller = { agentUrl: 'https://seller.example/mcp' };
  const request = { ...seller, taskType: 'create_media_buy', arguments: { budget: 1 } };
  const refusal = { error: { code: 'INVALID_REQUEST', message: 'no webhooks here' } };
  let registrations: Registrations;
  beforeEach(() => {
    registrations = process('http://127.0.0.1/webhooks');
  });

  it.each([
    ['answered', async () => refusal],
    ['thrown', () => Promise.reject(Object.assign(new Error('no webhooks'), { code: 'INVALID_REQUEST' }))],
  ])('once more without the registration where the seller refuses it (%s)', async (_how, refuse) => {
    const registration = await registrations.create(request);
    const calls: JsonObject[] = [];
    const answer = await callBy(registration, async (_agentUrl, _operation, args) => {
      calls.push(args);
      return args['push_notification_config'] ? refuse() : { status: 'submitted', task_id: 'task-1' };
    });
    expect(answer).toEqual({ status: 'submitted', task_id: 'task-1' });
    expect(calls.map((args) => 'push_notification_config' in args)).toEqual([true, false]);
    expect(new Set(calls.map((args) => args['idempotency_key'])).size).toBe(2);
    expect(await registrations.get(registration)).toMatchObject({ state: 'open', taskId: 'task-1' });
  });

  it('twice at most: then it is the caller’s error, and the end', async () => {
    const registration = await registrations.create(request);
    let calls = 0;
    const calling = callBy(registration, async () => {
      calls += 1;
      return refusal;
    });
    await expect(calling).rejects.toMatchObject({ name: 'SellerError', code: 'INVALID_REQUEST' });
    expect(calls).toBe(2);
    expect((await registrations.get(registration))?.state).toBe('refused');
  });

  it('of a seller that refuses the caller ends it; of one that cannot answer now it stays to be repeated', async () => {
    const ended = await registrations.create(request);
    await expect(callBy(ended, async () => ({ error: { code: 'AUTH_INVALID' } }))).rejects.toMatchObject({
      code: 'AUTH_INVALID',
    });
    expect((await registrations.get(ended))?.state).toBe('refused');
    const open = await registrations.create(request);
    for (const answer of [
      async () => ({ error: { code: 'RATE_LIMITED' } }),
      () => Promise.reject(new Error('socket hang up')),
    ]) {
      await expect(callBy(open, answer)).rejects.toThrow(/RATE_LIMITED|socket/);
      expect((await registrations.get(open))?.state).toBe('calling');
    }
  });

  it('is told when to stop', async () => {
    const { signal } = new AbortController();
    const registration = await registrations.create(request);
    let given: unknown;
    await callBy(
      registration,
      async (_agentUrl, _operation, _args, options) => {
        given = options;
        return { media_buy_id: 'mb-1' };
      },
      signal,
    );
    expect(given).toEqual({ signal });
  });

  it('by a client that throws at once, or gives its answer without a promise', async () => {
    const refused = Object.assign(new Error('no'), { code: 'AUTH_INVALID' });
    const clients: readonly CallSeller[] = [
      () => {
        throw refused;
      },
      (() => ({ status: 'submitted', task_id: 'task-1' })) as never,
    ];
    const [of, and] = clients.map((call) =>
      registrationsOf(
        { store: memoryStore({ state }), call, baseUrl: 'https://buyer.example/hooks', secrets: [NEWEST] },
        parts,
      ),
    ) as [Registrations, Registrations];
    const throwing = await of.create(request);
    await expect(throwing.call()).rejects.toMatchObject({ name: 'SellerError', code: 'AUTH_INVALID' });
    expect((await registrations.get(throwing))?.state).toBe('refused');
    const plain = await and.create(request);
    await plain.call();
    expect((await registrations.get(plain))?.state).toBe('open');
  });

  it('start takes nothing: the client is given once, at construction, and is needed', async () => {
    const made = process('http://127.0.0.1/webhooks');
    await expect((made.start as (given: unknown) => Promise<void>)({ call: anyClient })).rejects.toThrow(
      'registrations.start: takes no argument. Give the client once: createRegistrations({ call, … }).',
    );
    const options = { store: memoryStore(), baseUrl: 'https://buyer.example/webhooks', secrets: [NEWEST] };
    const without = createRegistrations(options);
    await expect(without.start()).rejects.toThrow('registrations.start: these registrations have no client.');
    await expect((await without.create(request)).call()).rejects.toMatchObject({ code: 'request_invalid' });
    for (const call of [{}, mcpCaller, Object.assign(async () => ({}), { transport: 'mcp' })]) {
      const make = (): unknown => createRegistrations({ ...options, call: call as CallSeller });
      expect(make).toThrow(
        /^call: is not a function|^call: mcpCaller is not a client|^call\.transport: "mcp"/,
      );
    }
  });

  it('by hand: the arguments, then settle', async () => {
    const registration = await registrations.create(request);
    expect(registration.toolArguments['budget']).toBe(1);
    expect(registration.agentConfiguration()).toHaveProperty('pushNotificationConfig');
    expect(registration.agentConfiguration('1.0')).toHaveProperty('taskPushNotificationConfig');
    expect(registration.agentRequest('1.0')).toHaveProperty('message.messageId');
    expect(await registration.settle({ id: 'task-9', status: { state: 'working' } })).toBe('settled');
    expect(await registrations.get(registration)).toMatchObject({ taskId: 'task-9', status: 'working' });
    const refused = await registrations.create(request);
    await expect(refused.settle({ error: { code: 'AUTH_REQUIRED' } })).rejects.toMatchObject({
      code: 'AUTH_REQUIRED',
    });
    expect((await registrations.get(refused))?.state).toBe('refused');
  });

  it('by hand, of a seller that refuses to be told where to send: once more without it, durable before', async () => {
    const first = await registrations.create(request);
    const refusal = { error: { code: 'INVALID_REQUEST', message: 'push_notification_config' } };
    expect(first.again()).toBeUndefined();
    await expect(first.settle(refusal)).rejects.toMatchObject({ code: 'INVALID_REQUEST' });
    const again = first.again() ?? expect.fail('once more');
    expect((await registrations.get(first))?.state).toBe('calling');
    // Settled with the same answer once more, it is the same.
    await expect(first.settle(refusal)).rejects.toMatchObject({ code: 'INVALID_REQUEST' });
    expect(first.again()?.toolArguments).toEqual(again.toolArguments);
    expect(again.operationId).toBe(first.operationId);
    expect(again.toolArguments).not.toHaveProperty('push_notification_config');
    expect(again.toolArguments['idempotency_key']).not.toBe(first.toolArguments['idempotency_key']);
    await expect(again.settle(refusal)).rejects.toMatchObject({ code: 'INVALID_REQUEST' });
    expect(again.again()).toBeUndefined();
    expect((await registrations.get(first))?.state).toBe('refused');
  });

  it('called again by its own process after a call without an answer, it is a repeat', async () => {
    const made = await registrations.create(request);
    const call = (answer: unknown) => async () => {
      if (answer instanceof Error) throw answer;
      return answer;
    };
    await expect(callBy(made, call(new Error('socket hang up')))).rejects.toThrow('socket hang up');
    await expect(callBy(made, call({ error: { code: 'AUTH_INVALID' } }))).rejects.toMatchObject({
      code: 'AUTH_INVALID',
    });
    expect((await registrations.get(made))?.state).toBe('calling');
  });

  it('a refusal that comes after its call was aborted changes nothing: the next repeat is told of it', async () => {
    const made = await registrations.create(request);
    const aborter = new AbortController();
    const late = async (): Promise<unknown> => {
      aborter.abort();
      return { error: { code: 'INVALID_REQUEST' } };
    };
    await expect(callBy(made, late, aborter.signal)).rejects.toMatchObject({ code: 'INVALID_REQUEST' });
    expect((await registrations.get(made))?.state).toBe('calling');
    expect(made.again()).toBeUndefined();
  });

  it('an answer that ends its call where no receiver could take it is a warning', async () => {
    const warnings: string[] = [];
    const logger = { ...silent, warn: (_fields: object, line: string) => void warnings.push(line) };
    const alone = createRegistrations({
      call: anyClient,
      store: memoryStore(),
      baseUrl: 'https://buyer.example/webhooks',
      secrets: [NEWEST],
      logger,
    });
    const made = await alone.create({ ...request });
    await made.settle({ status: 'completed', result: { media_buy_id: 'mb-1' } });
    expect(warnings).toEqual([expect.stringContaining('reaches no handler')]);
  });
});

describe('options', () => {
  it.each([undefined, 'webhooks.db', {}])('store %j is not a store', (store) => {
    const make = (): unknown =>
      createRegistrations({
        call: anyClient,
        store: store as never,
        baseUrl: 'https://buyer.example',
        secrets: [NEWEST],
      });
    expect(make).toThrow(/^createRegistrations: store: .* is not a store\. Use a store of this package\.$/);
  });

  it.each([
    ['https://buyer.example/webhooks/', 'https://buyer.example/webhooks/*'],
    ['https://buyer.example', 'https://buyer.example/*'],
    ['http://127.0.0.1:8080/a', 'http://127.0.0.1:8080/a/*'],
  ])('baseUrl %s: publicUrl %s', (baseUrl, publicUrl) => {
    expect(process(baseUrl).publicUrl).toBe(publicUrl);
  });

  it.each([
    '',
    'buyer.example',
    'ftp://buyer.example',
    'https://buyer.example/?a=1',
    'https://buyer.example/*',
    'https://me@buyer.example',
    'https://:pw@buyer.example',
    'https://buyer.example/webhooks?',
    'https://buyer.example/webhooks#',
  ])('baseUrl %j is a ConfigError', (baseUrl) => {
    expect(() => process(baseUrl)).toThrow(ConfigError);
  });

  it('http is for development, and a store without registrations for none', () => {
    const options = { store: memoryStore(), baseUrl: 'http://127.0.0.1/webhooks', secrets: [NEWEST] };
    expect(() => registrationsOf(options, parts)).toThrow(/not https/);
    const { registrations: _none, ...store } = memoryStore();
    expect(() => registrationsOf({ ...options, store, allowLoopback: true }, parts)).toThrow(
      /has no registrations/,
    );
  });

  it('ready rejects, with their number, where URLs need a secret that is not given', async () => {
    const before = process('https://buyer.example', [OLDER]);
    for (const agentUrl of ['https://a.example', 'https://b.example']) {
      await before.reportingWebhook({ agentUrl }, { frequency: 'daily' });
    }
    const request = { taskType: 'create_media_buy', arguments: {} };
    const answered = await before.create({ ...request, agentUrl: 'https://a.example' });
    await answered.settle({ status: 'submitted', task_id: 'task-1' });
    for (const token of [true, false]) {
      await before.create({ ...request, token, agentUrl: 'https://b.example' });
    }
    await expect(process('https://buyer.example', [NEWEST]).ready()).rejects.toThrow(/4 URLs .* and 2 calls/);
    await process('https://buyer.example', [NEWEST, OLDER]).ready();
  });
});

describe('createRegistrations, on the timers of the runtime', () => {
  const made = (): Registrations =>
    createRegistrations({
      call: anyClient,
      store: memoryStore({ state }),
      baseUrl: 'https://buyer.example/webhooks',
      secrets: [NEWEST],
      callMs: 1,
      logger: silent,
    });

  it('repeats a call, and stops while it sleeps', async () => {
    const registration = await made().create({
      agentUrl: 'https://seller.example/mcp',
      taskType: 'create_media_buy',
      arguments: {},
    });
    const registrations = made();
    const called = new Promise((resolve) => {
      registrations.observeBy?.(
        () => expect.fail('nothing is observed'),
        () => {},
      );
      void startBy(registrations, async (_agentUrl, _operation, args) => {
        resolve(args);
        return { status: 'submitted' };
      });
    });
    expect(await called).toEqual(registration.toolArguments);
    await registrations.stop();
    expect(await registrations.get(registration)).toMatchObject({ state: 'open' });
  });

  it('stops at once where it has just been started', async () => {
    const registrations = made();
    registrations.observeBy?.(
      () => expect.fail('nothing is observed'),
      () => {},
    );
    void startBy(registrations, async () => ({}));
    await registrations.stop();
  });
});
