import { gate, testReceiver, payloads } from './setup.ts';

/** A worker whose handler never settles is stopped; the process ends when nothing holds it. */
const started = gate();
const { deliver, receiver } = await testReceiver({
  mode: 'inbox',
  leaseMs: 100,
  handlerDeadlineMs: 600_000,
  maxRunMs: 600_000,
  handler: async () => {
    started.open();
    await new Promise(() => {});
  },
});
await receiver.start();
await deliver(payloads.tool('completed'));
await started.opened;
await receiver.stop();
process.stdout.write('stopped');
