import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { freePort } from '../support/free-port.ts';

const run = promisify(execFile);
const root = fileURLToPath(new URL('../..', import.meta.url));

/** The README's fenced blocks of a language, in order. */
function blocks(readme: string, language: string): string[] {
  return [...readme.matchAll(new RegExp(`^\`\`\`${language}\\n([^]*?)^\`\`\`$`, 'gm'))].map(
    ([, code = '']) => code,
  );
}

describe('README: its programs run as written', () => {
  let folder = '';
  let readme = '';

  beforeAll(async () => {
    readme = await readFile(join(root, 'README.md'), 'utf8');
    folder = await mkdtemp(join(tmpdir(), 'proto-webhooks-readme-'));
    await mkdir(join(folder, 'node_modules'));
    await writeFile(join(folder, 'package.json'), '{"type":"module"}');
    await symlink(root, join(folder, 'node_modules/proto-webhooks'));
    await symlink(join(root, 'node_modules/express'), join(folder, 'node_modules/express'));
  });

  afterAll(() => rm(folder, { recursive: true, force: true }));

  it('the fake seller and a receiver of one’s own', async () => {
    const program = blocks(readme, 'js').find((code) => code.includes('createFakeSeller'));
    const port = await freePort();
    await writeFile(join(folder, 'seller.js'), String(program).replaceAll('3000', String(port)));
    const { stdout } = await run(process.execPath, ['seller.js'], { cwd: folder });
    expect(stdout.trim().split('\n')).toEqual([
      'task tool completed',
      '200',
      '200',
      'task agent working',
      '200',
      'delivery-report tool completed',
      '200',
      '401 webhook_signature_digest_mismatch',
    ]);
  });

  it('the Express receiver of the first screen starts and refuses what is unsigned', async () => {
    const program = blocks(readme, 'js').find((code) => code.includes('proto-webhooks/express'));
    const ask =
      "\nconst answer = await fetch('http://127.0.0.1:3000/webhooks/seller', { method: 'POST', headers: { 'content-type': 'application/json' }, body: '{}' });" +
      "\nconsole.log(answer.status, answer.headers.get('www-authenticate'));\nprocess.exit(0);\n";
    const port = await freePort();
    await writeFile(join(folder, 'first.js'), (String(program) + ask).replaceAll('3000', String(port)));
    const { stdout } = await run(process.execPath, ['first.js'], { cwd: folder });
    expect(stdout.trim()).toBe('401 Signature error="webhook_signature_header_malformed"');
  });

  it('its TypeScript is TypeScript, checked strictly with the package’s own types', async () => {
    const program = [
      "import { createReceiver } from 'proto-webhooks';",
      "import { sqliteStore } from 'proto-webhooks/sqlite';",
      "import * as z from 'zod/mini';",
      'export const receiver = createReceiver({',
      "  publicUrl: 'https://buyer.example/webhooks/*',",
      '  senders: (url) => (url.pathname === "/a" ? [{ agentUrl: "https://seller.example/mcp" }] : []),',
      "  store: sqliteStore('webhooks.db'),",
      '  resultSchemas: { create_media_buy: z.object({ media_buy_id: z.string() }) },',
      '  handlers: {',
      '    completed: async (event, ctx) => {',
      "      const status: 'completed' = event.status;",
      "      if (event.parsed?.taskType === 'create_media_buy') {",
      '        const id: string = event.parsed.data.media_buy_id;',
      "        await ctx.transaction((db) => db.prepare('INSERT INTO buys VALUES (?, ?)').run(id, status));",
      '      }',
      '    },',
      '    deliveryReport: async (event) => {',
      '      const spend: number | null | undefined = event.report.media_buy_deliveries?.[0]?.totals?.spend;',
      '      void spend;',
      '    },',
      '    other: async (event) => void event.kind,',
      '  },',
      '});',
    ].join('\n');
    await symlink(join(root, 'node_modules/zod'), join(folder, 'node_modules/zod'));
    await symlink(join(root, 'node_modules/@types'), join(folder, 'node_modules/@types'));
    await writeFile(join(folder, 'typed.ts'), program);
    const tsc = join(root, 'node_modules/typescript/bin/tsc');
    for (const [module, resolution] of [
      ['nodenext', 'nodenext'],
      ['esnext', 'bundler'],
    ] as const) {
      const options = [
        '--noEmit',
        '--strict',
        '--exactOptionalPropertyTypes',
        '--target',
        'es2022',
        '--types',
        'node',
      ];
      const result = await run(
        process.execPath,
        [
          tsc,
          ...options,
          '--module',
          module,
          '--moduleResolution',
          resolution,
          '--skipLibCheck',
          'false',
          'typed.ts',
        ],
        { cwd: folder },
      ).catch((error: { stdout: string }) => error);
      expect(result.stdout, module).toBe('');
    }
  });
});
