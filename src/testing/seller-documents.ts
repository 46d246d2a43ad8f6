import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type Body, faultMap, misbehave, type SellerFault } from './seller-faults.ts';

/** What a seller publishes, how it fails to, and how often it was asked for. */
export interface DocumentServer {
  /** `http://127.0.0.1:<port>`. */
  readonly origin: string;
  /**
   * By path: JSON, bytes (a `Uint8Array`) that are sent as they are, or a function that gives either at each fetch.
   * Changes take effect at the next fetch; a path without an entry is answered 404.
   */
  readonly documents: Map<string, unknown>;
  /** By path, or under `*` for every path that has none of its own. */
  readonly faults: Map<string, SellerFault>;
  /** How often a path was asked for, or all of them. */
  readonly fetches: (path?: string) => number;
  readonly close: () => Promise<void>;
}

async function bodyOf(entry: unknown): Promise<Body> {
  const document: unknown = typeof entry === 'function' ? await (entry as () => unknown)() : entry;
  if (document === undefined || document instanceof Uint8Array) return document;
  return new TextEncoder().encode(JSON.stringify(document));
}

function send(body: Body, response: ServerResponse): void {
  response.writeHead(body === undefined ? 404 : 200, { 'Content-Type': 'application/json' });
  response.end(body ?? '{"error":"not found"}');
}

/** Serves documents on loopback. @param port 0: any free one. */
export async function serveDocuments(port: number): Promise<DocumentServer> {
  const documents = new Map<string, unknown>();
  const faults = faultMap();
  const asked: string[] = [];
  const answer = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const path = (request.url ?? '').replace(/\?.*$/, '');
    asked.push(path);
    const body = await bodyOf(documents.get(path));
    const fault = faults.get(path) ?? faults.get('*');
    if (fault === undefined) send(body, response);
    else misbehave(fault, body, request, response);
  };
  const server = createServer((request, response) => {
    answer(request, response).catch((error: unknown) => response.destroy(error as Error));
  });
  server.listen(port, '127.0.0.1');
  await once(server, 'listening');
  return {
    origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    documents,
    faults,
    fetches: (path) => (path === undefined ? asked : asked.filter((one) => one === path)).length,
    close: async () => {
      if (!server.listening) return;
      server.close();
      server.closeAllConnections();
      await once(server, 'close');
    },
  };
}
