import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { ConfigError } from '../../index.ts';
import type { SecretPlace } from './file-types.ts';
import type { Mistake, Path } from './yaml-text.ts';

/** Where secrets are looked for. */
export interface SecretSource {
  readonly env: Readonly<Record<string, string | undefined>>;
  /** The folder of the configuration. */
  readonly folder: string;
}

/** What is wrong with the values of a file, as it is found. */
export interface Findings extends SecretSource {
  readonly mistakes: readonly Mistake[];
  readonly wrong: (path: Path, text: string) => void;
  /** @returns undefined for a secret that is not there: that is a mistake by now. */
  readonly secret: (place: SecretPlace, path: Path) => string | undefined;
  /**
   * Makes something, whose `ConfigError` is a mistake.
   * @param placeOf the member that its message begins with, as a path of the file.
   */
  readonly refusedBy: (make: () => unknown, placeOf: (name: string) => Path) => void;
}

const MAX_CHARACTERS = 65_536;

/** By the code of `fs`. */
export const UNREADABLE: Readonly<Record<string, string>> = {
  ENOENT: 'there is no such file',
  EISDIR: 'it is a folder',
  EACCES: 'this user may not read it',
};

/** A URL of a message may have a password in it. */
const withoutPassword = (text: string): string => text.replaceAll(/\/\/[^\s"']*@/g, '//…@');

/** What was written for the name of a variable or a file may be the secret itself: then it is not shown. */
const shown = (name: string): string =>
  /^[\w./@-]{1,200}$/.test(name) && !name.startsWith('whsec_') ? `${name} ` : '';

/** Collects mistakes. Nothing of a secret is in one. */
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
      // One line end at the end is no part of it.
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
