// Listens at the host and port of the configuration, and closes servers. `serve.ts` uses it for both of its ports.
import type { Server } from 'node:http';
import type { ListenInFile } from './config/file-types.ts';

const REASONS: Readonly<Record<string, string>> = {
  EADDRINUSE: 'another process listens there. End it',
  EACCES: 'this user may not listen there. Let another one do so',
  EADDRNOTAVAIL: 'this machine has no such address. Write one that it has',
  ENOTFOUND: 'no address has that name. Write an address',
};

/**
 * Listens at a host and port of the configuration.
 * @param member the member of the configuration file, for messages.
 * @returns the port.
 * @throws Error (rejects) with one line that says what to change
 */
export async function listen(server: Server, member: string, { host, port }: ListenInFile): Promise<number> {
  await new Promise<void>((resolve, reject) => {
    const failed = ({ code = '', message }: NodeJS.ErrnoException): void => {
      const why = REASONS[code] ?? `${message}. Write another place`;
      reject(new Error(`${member}: ${host}:${port}: ${why}, or change ${member} in the file.`));
    };
    server.once('error', failed);
    server.listen(port, host, () => {
      server.off('error', failed);
      resolve();
    });
  });
  const address = server.address();
  return typeof address === 'object' && address !== null ? address.port : port;
}

/** Closes a server with all of its connections. */
export async function close(server: Server): Promise<void> {
  const closed = new Promise<void>((resolve) => void server.close(() => resolve()));
  server.closeAllConnections();
  await closed;
}
