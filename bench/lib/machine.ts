import { spawnSync } from 'node:child_process';
import { cpus, totalmem } from 'node:os';
import { fileURLToPath } from 'node:url';
import { manifestOf, peerFolder } from './installed.ts';

/** What the figures were measured on, without the machine's name. */
export type Machine = Readonly<Record<string, string>>;

const GIB = 1024 ** 3;

function said(command: string, args: readonly string[]): string {
  const { status, stdout } = spawnSync(command, args, { encoding: 'utf8' });
  return status === 0 ? (/\d+(?:\.\d+)+/.exec(stdout)?.[0] ?? 'unknown') : 'not in PATH';
}

export function machine(): Machine {
  const cores = cpus();
  const { version } = manifestOf(fileURLToPath(new URL('../..', import.meta.url)));
  const peers = ['ioredis', 'pg', 'express', 'fastify', 'hono', 'http-message-signatures', 'web-bot-auth'];
  const versions = peers.map((name) => [name, manifestOf(peerFolder(name)).version] as const);
  return {
    processor: `${cores.length} × ${cores[0]?.model.trim() ?? 'unknown'}`,
    memory: `${Math.round(totalmem() / GIB)} GiB`,
    platform: `${process.platform} ${process.arch}`,
    node: process.versions.node,
    openssl: process.versions['openssl'] ?? 'unknown',
    sqlite: process.versions['sqlite'] ?? 'unknown',
    redis: said('redis-server', ['--version']),
    postgresql: said('pg_config', ['--version']),
    'proto-webhooks': version,
    ...Object.fromEntries(versions),
  };
}
