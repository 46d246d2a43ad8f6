// PUBLIC_URL=https://buyer.example/webhooks/proto AGENT_URL=https://seller.example/mcp npm start
import 'reflect-metadata';
import { Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import type { NestExpressApplication } from '@nestjs/platform-express';
import { WebhooksController } from './webhooks.controller.js';

@Module({ controllers: [WebhooksController] })
class AppModule {}

const app = await NestFactory.create<NestExpressApplication>(AppModule, { rawBody: true });
// Nest's own limit of 100 kB would answer 413 to larger events, and sellers do not send those again.
app.useBodyParser('json', { limit: '1mb' });
app.enableShutdownHooks([], { useProcessExit: true });
await app.listen(Number(process.env.PORT ?? 3000), '127.0.0.1');
