import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import type { CallToolResult } from '@modelcontextprotocol/sdk/types.js';
import { randomUUID } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import * as z from 'zod';
import type { MovingAgent } from '../wire.ts';
import { type Book, hashOf, type Log, type Request, type Said } from './book.ts';

const config = z.looseObject({
  url: z.url(),
  operation_id: z.string().optional(),
  authentication: z.looseObject({ schemes: z.array(z.string()), credentials: z.string() }).optional(),
});
const told = {
  idempotency_key: z.string(),
  reporting_webhook: config.optional(),
  push_notification_config: config.optional(),
};
const order = z.looseObject({ buyer_ref: z.string(), ...told });
const update = z.looseObject({ media_buy_id: z.string(), revision: z.number().optional(), ...told });
const list = z.looseObject({ media_buy_ids: z.array(z.string()) });
const query = z.looseObject({ task_id: z.string() });

const given = (value: object, isError = false): CallToolResult => ({
  content: [],
  structuredContent: value as Record<string, unknown>,
  ...(isError && { isError }),
});

/** Whoever asks has its pid as its token. */
const pidIn = ({ headers }: IncomingMessage): number =>
  Number(/\d+$/.exec(headers.authorization ?? '')?.[0] ?? 0);

/** One request over the tool transport, written down when it comes, and when it is answered. */
export async function serveMcp(
  { book, log }: { readonly book: Book; readonly log: Log },
  agent: MovingAgent,
  req: IncomingMessage,
  res: ServerResponse,
): Promise<void> {
  const mcp = new McpServer({ name: 'seller', version: '1' });
  const closed = new AbortController();
  const ids: string[] = [];
  res.once('close', () => {
    closed.abort();
    if (!res.writableFinished) for (const id of ids) log.write({ what: 'gone', id });
  });

  /** An answer that nobody waits for any more was not given. */
  const answer = (id: string, said: Said): CallToolResult => {
    if (closed.signal.aborted) return { content: [] };
    if (said.kind === 'nothing') {
      res.destroy();
      return { content: [] };
    }
    log.write({ what: 'answered', id, said: said.kind === 'answer' ? said.status : said.code });
    ids.splice(ids.indexOf(id), 1);
    return said.kind === 'answer'
      ? given({ status: said.status, ...said.value })
      : given({ error: { code: said.code, message: 'this update is not taken' } }, true);
  };
  const asked = (operation: string, buy: string, args?: Request): string => {
    const id = randomUUID();
    ids.push(id);
    log.write({
      what: 'asked',
      id,
      agent: agent.name,
      operation,
      buy,
      ...(args && { key: args.idempotency_key, says: hashOf(args), by: pidIn(req) }),
    });
    return id;
  };

  mcp.registerTool('create_media_buy', { inputSchema: order }, (args) => {
    const id = asked('create_media_buy', args.buyer_ref);
    return answer(id, book.create(agent, args.buyer_ref, args as Omit<Request, 'media_buy_id'>));
  });
  mcp.registerTool('update_media_buy', { inputSchema: update }, async (args) => {
    const request = args as Request;
    const id = asked('update_media_buy', args.media_buy_id, request);
    return answer(id, await book.update(agent, request, closed.signal));
  });
  mcp.registerTool('get_media_buys', { inputSchema: list }, (args) => {
    asked('get_media_buys', args.media_buy_ids[0] ?? '');
    return given({ media_buys: book.list(agent, args.media_buy_ids) });
  });
  mcp.registerTool('get_task_status', { inputSchema: query }, (args) => {
    const found = book.status(agent, args.task_id);
    return found ? given(found) : given({ error: { code: 'REFERENCE_NOT_FOUND', message: 'no task' } }, true);
  });
  const transport = new StreamableHTTPServerTransport({});
  res.once('close', () => void transport.close());
  await mcp.connect(transport);
  await transport.handleRequest(req, res);
}
