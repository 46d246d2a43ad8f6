import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import type { CallToolResult } from '@modelcontextprotocol/sdk/types.js';
import type { IncomingMessage, ServerResponse } from 'node:http';
import * as z from 'zod';
import type { AgentPolicy } from '../wire.ts';
import type { Desk, Found, DeskReply } from './desk.ts';
import type { Asked } from './plan.ts';

const request = z.looseObject({
  buyer_ref: z.string(),
  idempotency_key: z.string(),
  context: z.unknown().optional(),
  push_notification_config: z.looseObject({ url: z.url(), operation_id: z.string() }).optional(),
});

const query = z.looseObject({ task_id: z.string(), include_result: z.boolean().optional() });

function askedIn(args: z.infer<typeof request>): Asked {
  const { buyer_ref: name, idempotency_key: requestKey, context, push_notification_config: config } = args;
  return {
    name,
    requestKey,
    taskType: 'create_media_buy',
    ...(context !== undefined && { context }),
    ...(config && { url: config.url, operationId: config.operation_id }),
  };
}

const given = (value: object, isStructured: boolean, isError = false): CallToolResult => ({
  content: isStructured ? [] : [{ type: 'text', text: JSON.stringify(value) }],
  ...(isStructured && { structuredContent: value as Record<string, unknown> }),
  ...(isError && { isError }),
});

function resultOf(reply: Exclude<DeskReply, { readonly kind: 'nothing' }>): CallToolResult {
  const { isStructured } = reply;
  if (reply.kind === 'refusal') {
    const error = { code: reply.code, message: 'push_notification_config is not supported' };
    return given({ error }, isStructured, true);
  }
  const { status, task } = reply;
  const { context } = task;
  // A first answer that is the end has no task_id: the seller must not invent one.
  const said = reply.kind === 'end' ? reply.result : { task_id: task.taskId };
  return given({ status, context, ...said }, isStructured);
}

function statusOf({ task, status, at, result, isEnd }: Found, withResult: boolean): object {
  const time = new Date(at).toISOString();
  return {
    task_id: task.taskId,
    task_type: task.taskType,
    status,
    created_at: new Date(task.createdAt).toISOString(),
    updated_at: time,
    ...(isEnd && { completed_at: time }),
    ...(result && !isEnd && { progress: result }),
    ...(result && isEnd && withResult && { result }),
  };
}

/** One request over the tool transport. */
export async function serveMcp(
  desk: Desk,
  policy: AgentPolicy,
  req: IncomingMessage,
  res: ServerResponse,
): Promise<void> {
  const mcp = new McpServer({ name: 'seller', version: '1' });
  mcp.registerTool('create_media_buy', { inputSchema: request }, async (args) => {
    const reply = await desk.ask(policy, askedIn(args));
    if (reply.kind !== 'nothing') return resultOf(reply);
    res.destroy();
    return { content: [] };
  });
  mcp.registerTool('get_task_status', { inputSchema: query }, async (args) => {
    const found = await desk.poll(policy, args.task_id, res);
    const error = { code: 'TASK_NOT_FOUND', message: 'There is no such task.' };
    return found ? given(statusOf(found, args.include_result ?? false), true) : given({ error }, true, true);
  });
  const transport = new StreamableHTTPServerTransport({});
  res.once('close', () => void transport.close());
  await mcp.connect(transport);
  await transport.handleRequest(req, res);
}
