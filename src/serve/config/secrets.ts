import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import type { SecretPlace } from './definition.ts';
import type { Mistake, Path } from './yaml-text.ts';

/** Where secrets are looked for. */
export interface SecretSource {
  readonly env: Readonly<Record<string, string | undefined>>;
  /** The folder of the configuration. */
  readonly folder: string;
}

/** Reads secrets, and keeps what is wrong. */
export interface Secrets {
  /** @returns '' for a secret that is not there: the mistake is kept. */
  readonly read: (place: SecretPlace, path: Path) => string;
  readonly mistakes: readonly Mistake[];
}

const MAX_BYTES = 65_536;

const REASONS: Readonly<Record<string, string>> = {
  ENOENT: 'there is no such file',
  EISDIR: 'it is a folder',
  EACCES: 'this user may not read it',
};

/** One line end at the end is no part of it. @throws what `fs` throws */
const fileText = (path: string): string => readFileSync(path, 'utf8').replace(/\r?\n$/, '');

/** Reads what the file names; nothing of a secret is in a message. */
export function createSecrets({ env, folder }: SecretSource): Secrets {
  const mistakes: Mistake[] = [];
  const wrong = (path: Path, text: string): string => {
    mistakes.push({ path, text });
    return '';
  };
  const ofVariable = (name: string, path: Path): string => {
    const value = env[name] ?? '';
    return value === ''
      ? wrong(path, `the environment variable ${name} is not set. Set it to the secret.`)
      : value;
  };
  const ofFile = (file: string, path: Path): string => {
    try {
      const value = fileText(resolve(folder, file));
      if (value === '') return wrong(path, `the file ${file} is empty. Write the secret into it.`);
      return value.length <= MAX_BYTES ? value : wrong(path, `the file ${file} is too long for a secret.`);
    } catch (error) {
      const { code = '' } = error as NodeJS.ErrnoException;
      return wrong(
        path,
        `the file ${file} cannot be read: ${REASONS[code] ?? code}. Write the path of a readable one.`,
      );
    }
  };
  return {
    mistakes,
    read: (place, path) =>
      'env' in place ? ofVariable(place.env, [...path, 'env']) : ofFile(place.file, [...path, 'file']),
  };
}
