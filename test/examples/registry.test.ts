import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import { type RegistryServer, startRegistry } from '../registry/server.ts';
import { INSTALL_MS } from '../support/packed.ts';
import { type Example, installed } from './kit.ts';

describe('examples/registry, installed from the packed package', () => {
  let example: Example;
  let server: RegistryServer;
  beforeAll(async () => {
    example = await installed('registry', inject('shared'));
    server = await startRegistry();
  }, INSTALL_MS);
  afterAll(async () => {
    await server.stop();
    await example.remove();
  });

  it('prints the badge and the failing steps', async () => {
    const env = { REGISTRY_URL: server.at('registry'), REGISTRY_TOKEN: 'sk_1' };
    const printed = await example.script('start', env, ['https://seller.example/mcp', 'sales']);
    expect(printed).toContain('verified as sales');
    expect(printed).toContain('sign failed: webhook_signature_invalid');
  });
});
