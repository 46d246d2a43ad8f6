import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

/** What the registry was asked. */
export interface Seen {
  readonly origin: 'registry' | 'other';
  readonly method: string;
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** A registry in another process. */
export interface RegistryServer {
  /** Base URL of the registry that behaves so. */
  readonly at: (fault: string) => string;
  /** Requests whose URL begins with `/<fault>/`, and those to the other origin. */
  readonly seen: (fault: string) => Promise<readonly Seen[]>;
  readonly stop: () => Promise<void>;
}

/** Starts `fixtures/registry-server.ts`. */
export async function startRegistry(): Promise<RegistryServer> {
  const file = fileURLToPath(new URL('fixtures/registry-server.ts', import.meta.url));
  const child = spawn(process.execPath, ['--no-warnings', file], { stdio: ['pipe', 'pipe', 'inherit'] });
  const [line] = (await once(createInterface(child.stdout), 'line')) as [string];
  const { port } = JSON.parse(line) as { readonly port: number };
  const origin = `http://127.0.0.1:${port}`;
  return {
    at: (fault) => `${origin}/${fault}`,
    async seen(fault) {
      const all = (await (await fetch(`${origin}/seen`)).json()) as readonly Seen[];
      return all.filter((one) => one.origin === 'other' || one.url.startsWith(`/${fault}/`));
    },
    async stop() {
      const ended = once(child, 'exit');
      child.stdin.end();
      await ended;
    },
  };
}
