import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:net';

/** Ports that no system gives to connections by default: what is free stays so until it is used, also while a server restarts. */
const [FROM, TO] = [10_000, 32_768];

/** A free port of 127.0.0.1. */
export async function freePort(): Promise<number> {
  for (let tries = 1; ; tries += 1) {
    const port = randomInt(FROM, TO);
    const server = createServer().listen(port, '127.0.0.1');
    try {
      await once(server, 'listening');
    } catch (error) {
      if (tries === 100) throw error;
      continue;
    }
    server.close();
    await once(server, 'close');
    return port;
  }
}
