// DATABASE_URL=postgres://127.0.0.1/webhooks npm start
import { play } from './play.ts';

const { DATABASE_URL = 'postgres://127.0.0.1/webhooks' } = process.env;
await play(import.meta.url, { DATABASE_URL });
