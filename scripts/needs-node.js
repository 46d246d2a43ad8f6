/*
 * `node scripts/needs-node.js`: the first command of every npm script; vitest.config.ts imports it too, for `npx vitest`. It
 * ends them with a line on what to run where the Node is one that runs no TypeScript. npm scripts run the Node of
 * `devDependencies`, but that one is fetched by an install script, and those can be off; then it is the system's. Plain
 * JavaScript, for any Node.
 */
import { existsSync } from 'node:fs';

if (!process.features.typescript) {
  const isInstalled = existsSync(new URL('../node_modules/node/package.json', import.meta.url));
  const command = isInstalled ? 'npm rebuild node --ignore-scripts=false' : 'npm ci';
  console.error(
    `This is Node ${process.versions.node}; the repository's scripts need Node >= 22.18. To install one for them run: ${command}`,
  );
  process.exit(1);
}
