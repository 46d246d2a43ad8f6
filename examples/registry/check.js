import { createRegistry, RegistryError } from 'proto-webhooks/registry';

const [agentUrl, role = 'sales'] = process.argv.slice(2);
const { REGISTRY_URL: baseUrl = '', REGISTRY_TOKEN: token } = process.env;

if (!agentUrl || !baseUrl) {
  console.error('Usage: REGISTRY_URL=https://registry.example node check.js AGENT_URL [ROLE]');
  process.exit(2);
}

const registry = createRegistry({ baseUrl, token, allowLoopback: baseUrl.startsWith('http://127.0.0.1') });

try {
  const badge = await registry.badge(agentUrl, role, '3.0');
  console.log(`${badge.agent_url} is ${badge.verified ? '' : 'not '}verified as ${badge.role}`);
  if (token) {
    const { run_id, diagnostics } = await registry.diagnostics(agentUrl, { maxRows: 100 });
    for (const row of diagnostics)
      console.log(`${run_id}: ${row.step_id ?? row.id} failed: ${row.error_text ?? ''}`);
  }
} catch (error) {
  if (!(error instanceof RegistryError)) throw error;
  // Stable: unauthorized, not_found, rate_limited, …
  console.error(`${error.code}: ${error.message}`);
  process.exitCode = 1;
}
