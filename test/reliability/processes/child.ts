import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';

/** A process that says when it serves, and can be killed at any time. */
export interface Child<R> {
  readonly process: ChildProcess;
  /** What it sends first. Rejects with what it said on stderr where it ends before. */
  readonly ready: Promise<R>;
  /** Resolves when it is gone. */
  readonly gone: Promise<unknown>;
  /** Why it ended by itself. */
  readonly problem: () => Error;
}

/**
 * Forks a file.
 * @param name for messages.
 * @param told what it is told, as JSON, in its first argument.
 * @param cache a folder in which processes keep what they have compiled: with it a start takes a third of the time.
 */
export function launch<R>(name: string, file: string, told: object, cache: string): Child<R> {
  const child = fork(file, [JSON.stringify(told)], {
    env: { ...process.env, NODE_COMPILE_CACHE: cache },
    execArgv: [],
    stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
  });
  const said: string[] = [];
  child.stderr?.on('data', (text: Buffer) => said.push(text.toString()));
  const gone = once(child, 'exit');
  const problem = (): Error =>
    new Error(`${name} ended by itself, ${child.exitCode ?? child.signalCode}: ${said.join('')}`);
  const failed = async (): Promise<never> => {
    await gone;
    throw problem();
  };
  const ready = Promise.race([once(child, 'message').then(([message]) => message as R), failed()]);
  // Whoever only kills it does not wait for it.
  ready.catch(() => undefined);
  return { process: child, ready, gone, problem };
}
