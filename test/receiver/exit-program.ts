import { createRegistrations, type Registrations } from '../../src/registrations/index.ts';
import { memoryStore } from '../../src/stores/memory.ts';
import { createFakeSeller } from '../../src/testing/index.ts';
import { gate, testReceiver, payloads, URL_GIVEN } from './setup.ts';
import { anyClient, pollerBy } from '../support/any-client.ts';

/* A program that ends when nothing holds it, or says what does. */

const say = (text: string): void => void process.stdout.write(text);
const call = (): Promise<never> => Promise.reject(new Error('nobody is called'));

function registered(): {
  readonly store: ReturnType<typeof memoryStore>;
  readonly registrations: Registrations;
} {
  const store = memoryStore();
  const secrets = ['a-secret-of-forty-two-characters-0000000001'];
  return {
    store,
    registrations: createRegistrations({
      call: anyClient,
      store,
      baseUrl: 'https://buyer.example/hooks',
      secrets,
    }),
  };
}

/** Timers that keep the process alive. */
const held = (): number => process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length;

/** It looks at the store before it waits. */
async function holding(before: number): Promise<void> {
  while (held() <= before) await new Promise((resolve) => setImmediate(resolve));
}

const PROGRAMS: Readonly<Record<string, () => Promise<void>>> = {
  /** A worker whose handler never settles is stopped. */
  stopped: async () => {
    const started = gate();
    const { deliver, receiver } = await testReceiver({
      mode: 'inbox',
      leaseMs: 100,
      handlerDeadlineMs: 600_000,
      advanced: { maxRunMs: 600_000 },
      handler: async () => {
        started.open();
        await new Promise(() => {});
      },
    });
    await receiver.start();
    await deliver(payloads.tool('completed'));
    await started.opened;
    await receiver.stop();
    say('stopped');
  },
  /** A test that fails closes nothing: seller, receiver with keys fetched and an event queued, registrations, poller. */
  failed: async () => {
    const seller = await createFakeSeller({ url: URL_GIVEN });
    const options = { senders: [seller.sender], allowLoopback: true };
    const { receiver } = await testReceiver({ ...options, mode: 'inbox' });
    await receiver.ready();
    const [key] = Object.values(seller.keys);
    const { sign, send } = await testReceiver(options);
    const signed = await sign(payloads.tool('completed'), key && { key: key.privateJwk });
    const { kind } = await send(signed, receiver);
    const { store, registrations } = registered();
    const inline = await testReceiver({
      store,
      registrations,
      senders: registrations.senders,
      publicUrl: registrations.publicUrl,
    });
    await inline.receiver.ready();
    await registrations.ready();
    pollerBy({ receiver: inline.receiver, registrations, call });
    say(`failed ${kind}`);
  },
  worker: async () => {
    const { receiver } = await testReceiver({ mode: 'inbox' });
    await receiver.ready();
    const before = held();
    await receiver.start();
    await holding(before);
    say('worker true');
    process.exit();
  },
  poller: async () => {
    const { store, registrations } = registered();
    const { receiver } = await testReceiver({
      store,
      registrations,
      senders: registrations.senders,
      publicUrl: registrations.publicUrl,
    });
    await receiver.ready();
    const before = held();
    const poller = pollerBy({ receiver, registrations, call });
    await poller.start();
    await holding(before);
    say('poller true');
    process.exit();
  },
};

await PROGRAMS[process.argv[2] ?? '']?.();
