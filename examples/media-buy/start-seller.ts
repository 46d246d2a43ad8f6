// The seller's process.
import { fork } from 'node:child_process';
import { once } from 'node:events';

interface Told {
  readonly origin?: string;
  readonly answer?: number;
}

/** Resolves when it listens. */
export async function startSeller(token: string) {
  const child = fork(new URL('seller.ts', import.meta.url), { env: { ...process.env, TOKEN: token } });
  const answers: number[] = [];
  const origin = await new Promise<string>((resolve, reject) => {
    child.once('exit', () => reject(new Error('the seller ended')));
    child.on('message', (told: Told) => {
      if (told.origin !== undefined) resolve(told.origin);
      if (told.answer !== undefined) answers.push(told.answer);
    });
  });
  return {
    mcp: `${origin}/mcp`,
    a2a: `${origin}/a2a`,
    /** Statuses that its webhooks were answered so far. */
    answers,
    stop: async () => {
      child.kill();
      if (child.exitCode === null && child.signalCode === null) await once(child, 'exit');
    },
  };
}
