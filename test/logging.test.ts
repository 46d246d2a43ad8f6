import { describe, expect, it, vi } from 'vitest';
import { type Alarm, createReceiver } from '../src/index.ts';
import { alarmRaiser, type RaiseAlarm, safeLogger } from '../src/for-tests.ts';
import { signDelivery } from '../src/sender/sign.ts';
import { memoryStore } from '../src/stores/memory.ts';
import { AGENT, payloads, sellerKey, URL_GIVEN } from './receiver/setup.ts';

const LEVELS = ['debug', 'info', 'log', 'warn', 'error'] as const;

it('a handler’s exception goes to the console without a logger, and ordinary outcomes do not', async () => {
  const { publicJwk, privateJwk } = await sellerKey();
  const lines: string[] = [];
  const spies = LEVELS.map((level) =>
    vi.spyOn(console, level).mockImplementation((message: unknown, fields: unknown) => {
      const { err } = fields as { err?: Error };
      lines.push(`${level} ${String(message)}: ${err?.message}`);
    }),
  );
  try {
    const receiver = createReceiver({
      publicUrl: URL_GIVEN,
      senders: [{ agentUrl: AGENT, pins: [publicJwk] }],
      store: memoryStore(),
      durability: { require: 'process' },
      handlers: {
        completed: () => {},
        other: () => Promise.reject(new Error('the ad server is away')),
      },
    });
    for (const status of ['completed', 'failed'] as const) {
      const signed = await signDelivery({ url: URL_GIVEN, body: payloads.tool(status), key: privateJwk });
      await receiver.verifyAndDispatch(signed.body, signed.headers);
    }
    await receiver.stop();
  } finally {
    for (const spy of spies) spy.mockRestore();
  }
  expect(lines.filter((line) => line.includes('the ad server is away'))).toHaveLength(1);
  expect(lines.every((line) => /^(?:warn|error) proto-webhooks: /.test(line))).toBe(true);
});

describe('rate limit of alarms', () => {
  const raised = (): {
    readonly raise: RaiseAlarm;
    readonly hooked: Alarm[];
    readonly lines: string[];
    readonly at: (ms: number) => void;
  } => {
    const hooked: Alarm[] = [];
    const lines: string[] = [];
    let now = 0;
    const logger = safeLogger({
      debug() {},
      info() {},
      error() {},
      warn: (_: object, text: string) => void lines.push(text),
    });
    return {
      raise: alarmRaiser(logger, { logger, onAlarm: (alarm) => void hooked.push(alarm) }, () => now),
      hooked,
      lines,
      at: (ms) => {
        now = ms;
      },
    };
  };

  it('lets one per code and subject through in a minute; the next has the number left out', () => {
    const { raise, hooked, lines, at } = raised();
    const alarm = { code: 'host_rewritten', sender: AGENT, message: 'm' } as const;
    for (let ms = 0; ms < 60_000; ms += 10_000) {
      at(ms);
      raise(alarm);
    }
    expect(hooked).toEqual([alarm]);
    raise({ ...alarm, sender: `${AGENT}/2` });
    raise({ ...alarm, code: 'public_url_mismatch' });
    expect(hooked).toHaveLength(3);
    at(60_000);
    raise(alarm);
    expect(hooked.at(-1)).toEqual({ ...alarm, suppressed: 5 });
    expect(lines).toEqual(['m', 'm', 'm', 'm']);
    // A clock that was set back does not silence it without end.
    at(-10_000);
    raise(alarm);
    expect(hooked.at(-1)).toEqual(alarm);
  });

  it('never drops DEAD events and changed payloads', () => {
    const { raise, hooked } = raised();
    for (let count = 0; count < 3; count += 1) raise({ code: 'dead', sender: AGENT, key: 'k', message: 'm' });
    for (const key of ['a', 'b', 'a']) raise({ code: 'payload_changed', sender: AGENT, key, message: 'm' });
    expect(hooked.map(({ code, key }) => [code, key])).toEqual([
      ['dead', 'k'],
      ['dead', 'k'],
      ['dead', 'k'],
      ['payload_changed', 'a'],
      ['payload_changed', 'b'],
    ]);
  });

  it('does not let unauthenticated requests hide alarms of authentic ones', () => {
    const { raise, hooked } = raised();
    raise({ code: 'clock_skew', message: 'unverified' });
    raise({ code: 'clock_skew', message: 'ours', proved: true });
    raise({ code: 'clock_skew', message: 'unverified' });
    expect(hooked.map(({ message }) => message)).toEqual(['unverified', 'ours']);
  });

  it('lets a hundred of one code and sender through in a minute, however many things they are about', () => {
    const { raise, hooked, at } = raised();
    const of = (code: Alarm['code'], n: number, sender = AGENT): Alarm => ({
      code,
      sender,
      message: 'm',
      key: `key-${n}`,
      taskId: `task-${n}`,
      operationId: `operation-${n}`,
    });
    for (const code of ['payload_changed', 'terminal_differs', 'second_terminal_status', 'dead'] as const) {
      hooked.length = 0;
      for (let n = 0; n < 150; n += 1) raise(of(code, n));
      expect([code, hooked.length]).toEqual([code, code === 'dead' ? 150 : 100]);
    }
    raise(of('payload_changed', 0, `${AGENT}/other`));
    expect(hooked).toHaveLength(151);
    at(60_000);
    raise(of('payload_changed', 150));
    expect(hooked.at(-1)).toMatchObject({ key: 'key-150', suppressed: 50 });
  });

  it('a place that moves does not hide that another one did: each value is told once, and would be lost', () => {
    const { raise, hooked } = raised();
    const moved = {
      code: 'jwks_uri_moved',
      sender: AGENT,
      message: 'm',
      first: 'https://a.example/',
    } as const;
    const urls = ['publisher', 'brand', 'declared'].map((name) => `https://${name}.example/`);
    for (const url of urls) raise({ ...moved, url });
    raise({ ...moved, jwksUri: 'https://keys.example/' });
    raise({ ...moved, url: 'https://brand.example/' });
    expect(hooked.map(({ url, jwksUri }) => url ?? jwksUri)).toEqual([...urls, 'https://keys.example/']);
  });

  it('what a stranger sends does not hide which setting refuses the seller', () => {
    const { raise, hooked } = raised();
    const refused = { code: 'webhook_signature_header_malformed', registered: AGENT, message: 'm' } as const;
    for (const option of ['protocol', 'auth', 'protocol', 'auth']) raise({ ...refused, option });
    expect(hooked.map(({ option }) => option)).toEqual(['protocol', 'auth']);
  });

  it('uses bounded memory for unlimited subjects', () => {
    const { raise, hooked } = raised();
    const of = (index: number): Alarm => ({
      code: 'payload_changed',
      sender: `${AGENT}/${index}`,
      message: 'm',
    });
    for (let index = 0; index < 10_001; index += 1) raise(of(index));
    expect(hooked).toHaveLength(10_001);
    // The one of longest ago was forgotten, the others were not.
    raise(of(0));
    raise(of(9000));
    expect(hooked).toHaveLength(10_002);
  });
});
