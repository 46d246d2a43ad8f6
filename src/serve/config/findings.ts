// Collects the mistakes in the values of a configuration file, and reads the secrets that the file names. The readers
// of sellers, store and sink use it. A mistake contains no part of a secret.
import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { ConfigError } from '../../index.ts';
import type { SecretPlace } from './file-types.ts';
import type { Mistake, Path } from './yaml-text.ts';

/** The environment variables and the folder of files from which secrets are read. */
export interface SecretSource {
  readonly env: Readonly<Record<string, string | undefined>>;
  /** The folder of the configuration. */
  readonly folder: string;
}

/** The mistakes in the values of a configuration file, in the order in which they are found. */
export interface Findings extends SecretSource {
  readonly mistakes: readonly Mistake[];
  readonly wrong: (path: Path, text: string) => void;
  /** Reads a secret. @returns undefined if the secret is missing, which is then added to the mistakes. */
  readonly secret: (place: SecretPlace, path: Path) => string | undefined;
  /**
   * Calls `make`, and turns a `ConfigError` that it throws into a mistake.
   * @param placeOf returns the path in the file for the name with which the error's message begins.
   */
  readonly refusedBy: (make: () => unknown, placeOf: (name: string) => Path) => void;
}

const MAX_CHARACTERS = 65_536;

/** The reasons why a file cannot be read, by the error code of `node:fs`. */
export const UNREADABLE: Readonly<Record<string, string>> = {
  ENOENT: 'there is no such file',
  EISDIR: 'it is a folder',
  EACCES: 'this user may not read it',
};

/** Removes credentials from URLs in a message. */
const withoutPassword = (text: string): string => text.replaceAll(/\/\/[^\s"']*@/g, '//…@');

/**
 * Returns the name of a variable or a file for a message. A text that has not the form of a name is left out, because
 * it may be the secret itself.
 */
const shown = (name: string): string =>
  /^[\w./@-]{1,200}$/.test(name) && !name.startsWith('whsec_') ? `${name} ` : '';

/** Makes an empty collection of mistakes, with functions that add some. */
export function findings({ env, folder }: SecretSource): Findings {
  const mistakes: Mistake[] = [];
  const wrong = (path: Path, text: string): undefined => void mistakes.push({ path, text });

  function ofVariable(name: string, path: Path): string | undefined {
    const value = env[name] ?? '';
    return value === ''
      ? wrong(path, `the environment variable ${shown(name)}is not set. Set it to the secret.`)
      : value;
  }

  function ofFile(file: string, path: Path): string | undefined {
    try {
      // A line end at the end of the file does not belong to the secret.
      const value = readFileSync(resolve(folder, file), 'utf8').replace(/\r?\n$/, '');
      if (value === '') return wrong(path, `the file ${shown(file)}is empty. Write the secret into it.`);
      return value.length <= MAX_CHARACTERS
        ? value
        : wrong(path, `the file ${shown(file)}is too long for a secret. Write the path of the right one.`);
    } catch (error) {
      const { code = '' } = error as NodeJS.ErrnoException;
      return wrong(
        path,
        `the file ${shown(file)}cannot be read: ${UNREADABLE[code] ?? code}. Write the path of a readable one.`,
      );
    }
  }

  return {
    env,
    folder,
    mistakes,
    wrong,
    secret: (place, path) =>
      'env' in place ? ofVariable(place.env, [...path, 'env']) : ofFile(place.file, [...path, 'file']),
    refusedBy: (make, placeOf) => {
      try {
        make();
      } catch (error) {
        if (!(error instanceof ConfigError)) throw error;
        const [, name = '', text = error.message] = /^(\S+): (.*)$/s.exec(error.message) ?? [];
        wrong(placeOf(name), withoutPassword(text));
      }
    },
  };
}
