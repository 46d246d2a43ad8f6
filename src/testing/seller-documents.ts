import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

/** What a seller publishes, and how often it was asked for. */
export interface DocumentServer {
  /** `http://127.0.0.1:<port>`. */
  readonly origin: string;
  /** JSON by path. Changes take effect at the next fetch; a path without an entry is answered 404. */
  readonly documents: Map<string, unknown>;
  /** How often a path was asked for, or all of them. */
  readonly fetches: (path?: string) => number;
  readonly close: () => Promise<void>;
}

/** Serves documents on loopback. @param port 0: any free one. */
export async function serveDocuments(port: number): Promise<DocumentServer> {
  const documents = new Map<string, unknown>();
  const asked: string[] = [];
  const server = createServer((req, res) => {
    const path = (req.url ?? '').replace(/\?.*$/, '');
    asked.push(path);
    const found = documents.get(path);
    res.writeHead(found === undefined ? 404 : 200, { 'Content-Type': 'application/json' });
    res.end(found === undefined ? '{"error":"not found"}' : JSON.stringify(found));
  });
  server.listen(port, '127.0.0.1');
  await once(server, 'listening');
  return {
    origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    documents,
    fetches: (path) => (path === undefined ? asked : asked.filter((one) => one === path)).length,
    close: async () => {
      if (!server.listening) return;
      server.close();
      server.closeAllConnections();
      await once(server, 'close');
    },
  };
}
