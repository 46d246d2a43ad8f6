import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';

/** A load balancer before the buyer's processes: one address for sellers, whichever of them lives. */
export interface Front {
  readonly port: number;
  readonly close: () => Promise<void>;
}

/** @param door the port of a process that serves; each connection asks anew. */
export async function startFront(door: () => Promise<number>): Promise<Front> {
  const sockets = new Set<Socket>();
  const join = async (near: Socket): Promise<void> => {
    const far = connect(await door(), '127.0.0.1');
    for (const [one, other] of [
      [near, far],
      [far, near],
    ] as const) {
      sockets.add(one);
      one.on('error', () => undefined);
      one.once('close', () => {
        sockets.delete(one);
        other.destroy();
      });
      one.pipe(other);
    }
  };
  const server = createServer((near) => {
    join(near).catch(() => near.destroy());
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  return {
    port: (server.address() as AddressInfo).port,
    close: async () => {
      const closed = once(server, 'close');
      server.close();
      for (const socket of sockets) socket.destroy();
      await closed;
    },
  };
}
