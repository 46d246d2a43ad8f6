// REDIS_URL=redis://127.0.0.1:6379 npm start
import { play } from './play.ts';

const { REDIS_URL = 'redis://127.0.0.1:6379' } = process.env;
await play(import.meta.url, { REDIS_URL });
