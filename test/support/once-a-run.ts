import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

/** On a fresh machine a server is installed first. */
const MAKING_MS = 300_000;

/** What became of it. */
type Said = { readonly value: unknown } | { readonly error: string };

const fileOf = (folder: string, name: string): string => join(folder, `${name}.json`);

/**
 * Makes a thing that all test files of a run share: the first who asks makes it, the others wait for that.
 * @param folder `inject('shared')`.
 * @param make gives what JSON can say.
 * @throws Error for every caller, where it could not be made.
 */
export async function onceARun<T>(folder: string, name: string, make: () => Promise<T>): Promise<T> {
  const file = fileOf(folder, name);
  if (isFirst(join(folder, `${name}-making`))) write(file, await outcomeOf(make));
  const deadline = performance.now() + MAKING_MS;
  while (!existsSync(file)) {
    if (performance.now() > deadline) throw new Error(`${name}, shared by the tests of a run, was not made`);
    await sleep(50);
  }
  const said = read(file);
  if ('error' in said) throw new Error(said.error);
  return said.value as T;
}

/** @returns what was made in this run, if it was. */
export function madeInRun(folder: string, name: string): unknown {
  const file = fileOf(folder, name);
  const said = existsSync(file) ? read(file) : { value: undefined };
  return 'value' in said ? said.value : undefined;
}

async function outcomeOf(make: () => Promise<unknown>): Promise<Said> {
  try {
    return { value: await make() };
  } catch (error) {
    return { error: String(error) };
  }
}

/** A folder is made once. */
function isFirst(folder: string): boolean {
  try {
    mkdirSync(folder);
    return true;
  } catch {
    return false;
  }
}

/** Every reader sees all of it, or nothing. */
function write(file: string, said: Said): void {
  writeFileSync(`${file}.new`, JSON.stringify(said));
  renameSync(`${file}.new`, file);
}

function read(file: string): Said {
  return JSON.parse(readFileSync(file, 'utf8')) as Said;
}
