import {
  Controller,
  Post,
  Req,
  Res,
  type BeforeApplicationShutdown,
  type OnModuleInit,
} from '@nestjs/common';
import type { Request, Response } from 'express';
import { webhookHandler } from 'proto-webhooks/express';
import { receiver } from './receiver.js';

const handle = webhookHandler(receiver);

@Controller('webhooks')
export class WebhooksController implements OnModuleInit, BeforeApplicationShutdown {
  async onModuleInit(): Promise<void> {
    await receiver.ready();
  }

  @Post('proto')
  proto(@Req() req: Request, @Res() res: Response): void {
    handle(req, res);
  }

  async beforeApplicationShutdown(): Promise<void> {
    await receiver.stop(); // deliveries under way are finished, new ones get 503
  }
}
