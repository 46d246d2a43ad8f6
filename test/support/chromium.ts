import { spawnSync } from 'node:child_process';
import { type Browser, chromium } from 'playwright-core';
import { aptInstall } from './apt.ts';

const BINARIES = ['chromium', 'chromium-browser', 'google-chrome'];

/** `CHROMIUM_PATH` names one to use instead. */
const installed = (): string | undefined =>
  process.env['CHROMIUM_PATH'] || BINARIES.find((binary) => spawnSync(binary, ['--version']).status === 0);

/** Where the shell finds it: a browser is started by path. */
function pathOf(binary: string): string {
  const { stdout } = spawnSync('sh', ['-c', 'command -v "$0"', binary], { encoding: 'utf8' });
  return stdout.trim();
}

/**
 * Starts the distribution's Chromium, without a window.
 * @param flags of its command line.
 * @throws Error that says what to install.
 */
export async function launchChromium(...flags: readonly string[]): Promise<Browser> {
  await aptInstall({ name: 'chromium', isInstalled: () => installed() !== undefined });
  const binary = installed();
  if (binary === undefined) {
    throw new Error(
      'These tests need Chromium in PATH, or its path in CHROMIUM_PATH (Debian: apt-get install chromium; macOS: brew install --cask chromium).',
    );
  }
  return chromium.launch({
    executablePath: pathOf(binary),
    // As root there is no sandbox for it; what it opens is the page of this repository alone.
    args: [...flags, ...(process.getuid?.() === 0 ? ['--no-sandbox'] : [])],
  });
}
