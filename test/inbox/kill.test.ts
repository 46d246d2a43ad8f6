import { fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { HandlerContext } from '../../src/options.ts';
import { sqliteStore } from '../../src/stores/sqlite.ts';
import { AGENT, testReceiver } from '../receiver/setup.ts';
import { tempFile, type TempFile } from '../stores/sqlite-files.ts';
import { channel, eventKey, seenRecord, status } from './setup.ts';

const WORKER = fileURLToPath(new URL('fixtures/worker.ts', import.meta.url));
/** Of the one that dies. */
const LEASE_MS = 400;
const KEY = eventKey(1);

let temp: TempFile;

beforeEach(() => {
  temp = tempFile();
});

afterEach(() => {
  temp.remove();
});

describe('kill -9 of a worker in a handler', () => {
  it('another worker takes the event over when the lease is over, and completes it once', async () => {
    const handled = channel<HandlerContext>();
    const here = await testReceiver({
      store: sqliteStore(temp.file),
      mode: 'inbox',
      worker: { pollMs: 20 },
      handler: (_, ctx) => handled.push(ctx),
    });
    expect(await here.deliver(status(KEY, 'task-1'))).toMatchObject({ state: 'queued' });

    const child = fork(WORKER, [temp.file, AGENT, String(LEASE_MS)]);
    const gone = once(child, 'exit');
    const [said] = await once(child, 'message');
    expect(said).toEqual({ key: KEY, attempt: 1 });
    expect(await seenRecord(here, KEY)).toMatchObject({ state: 'leased', attempts: 1 });
    child.kill('SIGKILL');
    expect(await gone).toEqual([null, 'SIGKILL']);

    await here.receiver.start();
    await handled.next();
    // The same task waits until its handler's event is settled, so this one's turn is after it.
    await here.deliver(status(eventKey(2), 'task-1'));
    await handled.next();
    expect(await seenRecord(here, KEY)).toMatchObject({ state: 'applied' });
    await here.receiver.stop();
  });
});
