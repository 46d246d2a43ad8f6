// Once, when you deploy: makes the store's tables, or brings them up to date.
import { Pool } from 'pg';
import { migrate } from 'proto-webhooks/postgres';

const pool = new Pool({ connectionString: process.env.DATABASE_URL });
await migrate(pool);
await pool.end();
