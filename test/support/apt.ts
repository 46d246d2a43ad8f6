import { execFile } from 'node:child_process';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);

const OPTIONS = { env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive' } };

/** Debian's package of a server or a language. */
export interface Package {
  readonly name: string;
  /** The service that it starts on install, which was not there before, so that it is ours to end. */
  readonly service?: string;
  readonly isInstalled: () => boolean;
}

/**
 * Installs it where that may be done: on Debian, as root. Whether it is there afterwards is for the caller to see, who
 * knows what to tell a person. Test files that run at the same time take turns: apt does not wait for its list's lock.
 */
export async function aptInstall({ name, service, isInstalled }: Package): Promise<void> {
  if (isInstalled() || process.getuid?.() !== 0) return;
  const steps = [
    'apt-get update -qq',
    `apt-get -o DPkg::Lock::Timeout=120 install -y -qq --no-install-recommends ${name}`,
    ...(service === undefined ? [] : [`service ${service} stop`]),
  ];
  // The lock is the kernel's: it goes with the process that has it, however that ends.
  const turn = [join(tmpdir(), 'proto-webhooks-apt.lock'), 'sh', '-c', steps.join(' && ')];
  await run('flock', turn, OPTIONS).catch(() => undefined);
}
