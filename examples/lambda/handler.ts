// The function. Never call receiver.start() here: a function is frozen between invocations, and so is its worker.
import { webhookHandler } from 'proto-webhooks/lambda';
import { receiver } from './receiver.ts';

export const handler = webhookHandler(receiver);
