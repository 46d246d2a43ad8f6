import { expect, it } from 'vitest';
import { type FakeSeller, MISTAKES } from '../../src/testing/index.ts';
import type { Running } from './kit.ts';

/** An example that runs, and the seller that it knows. */
export interface Wired {
  readonly seller: FakeSeller;
  /** The process whose handlers run, if not the server's own. */
  readonly handles: Pick<Running, 'printed'>;
}

const REFUSED: readonly (readonly [string, string])[] = [
  ['a forged signature', 'tampered-signature'],
  ['a body that was changed on its way', 'tampered-body'],
  ['no signature', 'unsigned'],
  ['another content type', 'text-plain'],
  ['a body over the limit', 'oversize'],
];

/** `maxBodyBytes` as it is by default; the payloads are ASCII. */
const MOST_BYTES = 1_048_576;

/** White space, escapes, number forms and an order of names that no parser gives back as they came. */
function unusual(payload: object, key: string): string {
  const plain = JSON.stringify({ ...payload, idempotency_key: key }, null, 3);
  return `${plain.slice(0, -1)}, "10": 1.0, "2": 1e2, "\\u0061":"\\/ é \\u00e9" }\n`;
}

/** How often the handler ran for an event: every example's handler prints its key. */
const runs = ({ handles }: Wired, key: string): number => handles.printed().split(key).length - 1;

/** What every wiring must do, as tests of the running example. */
export function itReceives(wired: () => Wired): void {
  const statuses = async (payload: object | string): Promise<readonly (number | undefined)[]> =>
    (await wired().seller.deliver(payload)).attempts.map(({ status }) => status);

  it('an event is accepted, and its duplicate, and the handler runs once', async () => {
    const payload = wired().seller.payloads.tool('working');
    expect(await statuses(payload)).toEqual([200]);
    expect(await statuses(payload)).toEqual([200]);
    await expect.poll(() => runs(wired(), payload.idempotency_key)).toBe(1);
    const last = wired().seller.payloads.tool('working');
    expect(await statuses(last)).toEqual([200]);
    // What came after it has been handled: a second run of the first would be seen by now.
    await expect.poll(() => runs(wired(), last.idempotency_key)).toBe(1);
    expect(runs(wired(), payload.idempotency_key)).toBe(1);
  });

  it('the bytes are verified as they came: parsed and serialised again they would be others', async () => {
    const payload = wired().seller.payloads.tool('working');
    const key = `${payload.idempotency_key}-unusual`;
    const text = unusual(payload, key);
    expect(JSON.stringify(JSON.parse(text))).not.toBe(text);
    expect(await statuses(text)).toEqual([200]);
    await expect.poll(() => runs(wired(), key)).toBe(1);
  });

  it('a body as large as the limit is accepted: no parser of the framework has a smaller one', async () => {
    const payload = wired().seller.payloads.tool('working');
    expect(await statuses(JSON.stringify(payload).padEnd(MOST_BYTES))).toEqual([200]);
    await expect.poll(() => runs(wired(), payload.idempotency_key)).toBe(1);
  });

  it('an agent-transport event and a report are accepted', async () => {
    expect(await statuses(wired().seller.payloads.agent('working'))).toEqual([200]);
    expect(await statuses(wired().seller.payloads.report())).toEqual([200]);
  });

  it.each(REFUSED)('%s is refused, and not handled', async (_, mistake) => {
    const { seller } = wired();
    const payload = seller.payloads.tool('working');
    const { last } = await seller.deliver(payload, { mistake });
    expect(last.status).toBe(MISTAKES[mistake]?.status);
    // A front may rename the header; what is there must be right.
    expect(last.code).toBe(MISTAKES[mistake]?.code);
    expect(runs(wired(), payload.idempotency_key)).toBe(0);
  });
}
