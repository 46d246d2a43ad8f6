// What is played: a seller that sends, repeats, and finds the receiver dead.
import { fork, type ChildProcess } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer, type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createFakeSeller } from 'proto-webhooks/testing';

interface Told {
  readonly ready?: boolean;
  readonly enqueued?: string;
  readonly ran?: string;
  readonly says?: string;
}

/** A process that has said that it is ready; one that never says so is ended. */
async function start(file: URL, env: Record<string, string>): Promise<ChildProcess> {
  const child = fork(file, { env: { ...process.env, ...env } });
  try {
    await heard(child, ({ ready }) => ready === true);
    return child;
  } catch (error) {
    await kill(child);
    throw error;
  }
}

function heard(child: ChildProcess, isIt: (told: Told) => boolean): Promise<void> {
  return new Promise((resolve, reject) => {
    child.on('message', (told: Told) => isIt(told) && resolve());
    child.once('exit', () => reject(new Error('the process ended')));
  });
}

async function kill(child: ChildProcess | undefined): Promise<void> {
  if (!child || child.exitCode !== null || child.signalCode !== null) return;
  const gone = once(child, 'exit');
  child.kill('SIGKILL');
  await gone;
}

async function freePort(): Promise<string> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  return String(port);
}

const RETRY = { attempts: 8, delayMs: () => 200 };

/** @param here the example's own `import.meta.url`, beside which its receiver and worker are. */
export async function play(here: string, given: Record<string, string>): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'proto-webhooks-example-'));
  const PORT = await freePort();
  const seller = await createFakeSeller({ url: `http://127.0.0.1:${PORT}/webhooks/proto` });
  const env = {
    ...given,
    PORT,
    QUEUE: `webhooks-${randomUUID()}`,
    DATABASE: join(folder, 'webhooks.db'),
    CRASHED: join(folder, 'crashed'), // a file that says that the receiver was killed once
    AGENT_URL: seller.agentUrl,
    BRAND_JSON_URL: seller.brandJsonUrl,
  };
  let receiver: ChildProcess | undefined;
  let worker: ChildProcess | undefined;
  const ran: string[] = [];
  const send = async (what: string, payload: object): Promise<number | undefined> => {
    const { last } = await seller.deliver(payload, { retry: RETRY });
    console.log(`${what}: ${last.status}`);
    return last.status;
  };
  const hasRun = async (its: ChildProcess, key: string): Promise<void> => {
    if (!ran.includes(key)) await heard(its, (told) => told.ran === key);
  };
  try {
    receiver = await start(new URL('receiver.ts', here), env);
    worker = await start(new URL('worker.ts', here), env);
    worker.on('message', ({ ran: key, says }: Told) => {
      if (key === undefined) return;
      ran.push(key);
      console.log(`  ${says}`);
    });
    const first = seller.payloads.tool('completed');
    const report = seller.payloads.report();
    const answers = [await send('an event', first), await send('the same event', first)];
    answers.push(await send('a report', report));

    const crash = seller.payloads.tool('completed', { operation_id: 'crash' });
    const enqueued = heard(receiver, (told) => told.enqueued !== undefined);
    const cut = seller.deliver(crash, { retry: { attempts: 1, delayMs: () => 0 } });
    await enqueued;
    console.log('kill -9 of the receiver, in the middle of an event');
    await kill(receiver);
    await cut;
    receiver = await start(new URL('receiver.ts', here), env);
    answers.push(await send('its retry', crash));

    // One more, so that whatever came before it has been run.
    const last = seller.payloads.tool('completed');
    answers.push(await send('another event', last));
    await hasRun(worker, last.idempotency_key);
    await hasRun(worker, crash.idempotency_key);
    const each: string[] = [first, report, crash, last].map(({ idempotency_key }) => idempotency_key);
    const right =
      answers.every((status) => status === 200) && String(ran.toSorted()) === String(each.toSorted());
    console.log(right ? '4 events, 4 jobs, each run once' : `expected ${String(each)}, ran ${String(ran)}`);
    process.exitCode = right ? 0 : 1;
  } finally {
    await kill(receiver);
    await kill(worker);
    await seller.close();
    rmSync(folder, { recursive: true, force: true });
  }
}
