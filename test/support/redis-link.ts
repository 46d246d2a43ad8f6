import { once } from 'node:events';
import type { Socket } from 'node:net';
import { connect, createServer } from 'node:net';

/** A TCP proxy before one port of 127.0.0.1. */
export interface Link {
  readonly port: number;
  /** From now on nothing comes through, either way, and nobody is told. */
  readonly cut: () => void;
  /** All connections are reset; new ones go to `port`, and come through. */
  readonly retarget: (port: number) => void;
  /** How often the near side spoke after it had heard the far side: round trips. */
  readonly turns: () => number;
  readonly close: () => Promise<void>;
}

/** @param port of the proxy; a free one by default. */
export async function startLink(target: number, port: number = 0): Promise<Link> {
  const sockets = new Set<Socket>();
  let far = target;
  let through = true;
  let turns = 0;
  const forward = (from: Socket, to: Socket, heard: () => void): void => {
    sockets.add(from);
    from.on('data', (chunk) => {
      heard();
      if (through) to.write(chunk);
    });
    from.on('close', () => {
      sockets.delete(from);
      if (through) to.destroy();
    });
    from.on('error', () => undefined);
  };
  const server = createServer((near) => {
    const other = connect(far, '127.0.0.1');
    let speaking = false;
    forward(near, other, () => {
      if (!speaking) turns += 1;
      speaking = true;
    });
    forward(other, near, () => {
      speaking = false;
    });
  });
  server.listen(port, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('no port');
  const reset = (): void => {
    for (const socket of sockets) socket.destroy();
  };
  return {
    port: address.port,
    cut: () => {
      through = false;
    },
    retarget: (port) => {
      far = port;
      through = true;
      reset();
    },
    turns: () => turns,
    close: async () => {
      reset();
      server.close();
      await once(server, 'close');
    },
  };
}
