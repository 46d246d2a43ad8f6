// npm run build && DATABASE_URL=postgres://127.0.0.1/webhooks node examples/pg-boss/run.ts
import { play } from '../bullmq/play.ts';

const { DATABASE_URL = 'postgres://127.0.0.1/webhooks' } = process.env;
await play(import.meta.url, { DATABASE_URL });
