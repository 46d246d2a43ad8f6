// Once, when you deploy: makes the store's tables, or brings them up to date.
import { migrate } from 'proto-webhooks/postgres';
import { pool } from './receiver.ts';

await migrate(pool);
await pool.end();
