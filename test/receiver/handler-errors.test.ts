import { describe, expect, it } from 'vitest';
import type { Logger, ReceiverOptions } from '../../src/index.ts';
import { testReceiver, payloads, type TestReceiver } from './setup.ts';

interface Line {
  readonly message: string;
  readonly err?: unknown;
  readonly error?: unknown;
  readonly detail?: unknown;
  readonly suppressed?: unknown;
}

const MINUTE_MS = 60_000;

/** A receiver whose handler throws what `thrown` says, and what its owner sees at level error. */
async function failing(thrown: { text: string }, more: Partial<ReceiverOptions> = {}) {
  const errors: Line[] = [];
  const clock = { now: Date.now() };
  const error: Logger['error'] = (fields, message) => void errors.push({ ...fields, message });
  const made: TestReceiver = await testReceiver({
    now: () => clock.now,
    logger: { debug() {}, info() {}, warn() {}, error },
    handlers: {
      other: () => {
        throw new Error(thrown.text);
      },
    },
    ...more,
  });
  const post = async (): Promise<readonly Line[]> => {
    const signed = await made.sign(payloads.tool('completed'), { now: () => clock.now });
    await made.send(signed);
    return errors.splice(0);
  };
  return { clock, post };
}

describe('a handler that fails', () => {
  it('logs one line per attempt with its text, and the stack once a minute per error', async () => {
    const thrown = { text: 'the database is away' };
    const { clock, post } = await failing(thrown);
    const told = { message: 'delivery unavailable', detail: 'the handler failed: the database is away' };

    expect(await post()).toMatchObject([
      { message: 'a handler failed', err: { stack: expect.any(String) as string } },
      told,
    ]);
    for (let again = 0; again < 3; again += 1) {
      const lines = await post();
      expect(lines).toMatchObject([told]);
      expect(lines[0]).not.toHaveProperty('err');
    }

    thrown.text = 'another one';
    expect(await post()).toMatchObject([
      { message: 'a handler failed' },
      { message: 'delivery unavailable' },
    ]);

    thrown.text = 'the database is away';
    clock.now += MINUTE_MS;
    expect(await post()).toMatchObject([{ message: 'a handler failed', suppressed: 3 }, told]);
  });
});
