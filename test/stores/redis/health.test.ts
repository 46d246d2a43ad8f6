import { expect, it } from 'vitest';
import { redisStore } from '../../../src/stores/redis.ts';
import { testReceiver } from '../../receiver/setup.ts';
import { ON_DISK, startServer, until } from '../../support/redis.ts';
import { clientOf } from '../redis-harness.ts';

it('receiver.health stays live while the server is killed, and is ready when it is back', async () => {
  const server = await startServer(ON_DISK);
  let time = Date.now();
  const store = redisStore({ client: clientOf.port(server.port) });
  const { receiver } = await testReceiver({ store, now: () => time });
  const later = (): ReturnType<typeof receiver.health> => {
    time += 1_000;
    return receiver.health();
  };
  try {
    await receiver.ready();
    await until('it is ready', async () => (await later()).ready);
    await server.kill();
    const { live, ready, store: health } = await later();
    expect([live, ready, health.fault?.code]).toEqual([true, false, 'store_unavailable']);
    await server.start();
    await until('it is ready again', async () => (await later()).ready);
  } finally {
    await receiver.stop();
    await server.remove();
  }
});
