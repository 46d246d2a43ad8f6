import { onTestFinished } from 'vitest';
import { createRegistry, type RegistryErrorCode } from '../../src/registry/index.ts';
import { startRegistry } from '../registry/server.ts';
import type { Row } from './row.ts';

type Registry = ReturnType<typeof createRegistry>;

const AGENT = 'https://seller.example/mcp';

/** What a call rejects with, of a registry that has that fault. */
const calling =
  (fault: string, call: (registry: Registry) => Promise<unknown> = (it) => it.badge(AGENT, 'sales')) =>
  async (): Promise<unknown> => {
    const server = await startRegistry();
    onTestFinished(server.stop);
    const registry = createRegistry({ baseUrl: server.at(fault), allowLoopback: true, attempts: 1 });
    return call(registry).catch((error: unknown) => error);
  };

/** Every code of `RegistryError`: how it comes about. */
export const REGISTRY: Readonly<Record<RegistryErrorCode, Row<unknown>>> = {
  bad_request: { test: calling('registry', (it) => it.badge('no URL', 'sales')), message: 'agent' },
  unauthorized: { test: calling('registry', (it) => it.diagnostics(AGENT)), message: 'needs a token' },
  forbidden: { test: calling('403'), message: 'Owner only' },
  not_found: { test: calling('nothing'), message: 'no fault nothing' },
  rate_limited: { test: calling('429'), message: 'later' },
  server: { test: calling('500'), message: 'server error' },
  invalid_answer: { test: calling('html'), message: 'not JSON' },
  unreachable: { test: calling('cut'), message: 'closed' },
};
