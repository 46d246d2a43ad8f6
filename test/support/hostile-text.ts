import { expect } from 'vitest';
import type { Logger } from '../../src/index.ts';

/** Stands in hostile text, so that it is found again wherever it goes. */
export const MARK = 'MARK7';

/** A seller's text that begins a line of its own, steers a terminal, turns the direction, and fills a log. */
export const HOSTILE: string = `${MARK}\r\n\u001B[2J\u202E\u2028pass  step forged by ${MARK}${' x'.repeat(3_000)}`;

/** What a log line, a terminal or a pager would act on. */
const ACTED_ON =
  // oxlint-disable-next-line no-control-regex -- control characters are what it is for
  /[\u0000-\u001F\u007F-\u009F\u061C\u180E\u200B-\u200F\u2028-\u202E\u2060-\u206F\uFEFF\p{Cs}]/u;

/** Code points of one text that is written: verification.md §2.30, and what is ours around it. */
const MOST = 4_200;

type Path = readonly (string | number)[];

/** Every place of a text in JSON: each string, and each name of a member. */
function places(
  value: unknown,
  path: Path = [],
): readonly { readonly path: Path; readonly isName: boolean }[] {
  if (typeof value === 'string') return [{ path, isName: false }];
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([name, member]) => {
    const at = [...path, Array.isArray(value) ? Number(name) : name];
    const own = Array.isArray(value) ? [] : [{ path: at, isName: true }];
    return [...own, ...places(member, at)];
  });
}

function replaced(value: unknown, path: Path, isName: boolean, text: string): unknown {
  const [step, ...rest] = path;
  if (step === undefined) return text;
  if (Array.isArray(value)) {
    return value.map((item: unknown, at) => (at === step ? replaced(item, rest, isName, text) : item));
  }
  return Object.fromEntries(
    Object.entries(value as object).map(([name, member]): [string, unknown] => {
      if (name !== step) return [name, member];
      return isName && rest.length === 0 ? [text, member] : [name, replaced(member, rest, isName, text)];
    }),
  );
}

/** The JSON once for each text in it, with hostile text in that place alone; and once with it in all of them. */
export function everywhere(json: unknown, text: string = HOSTILE): readonly unknown[] {
  const all = places(json);
  const values = all.filter(({ isName }) => !isName);
  return [
    ...all.map(({ path, isName }) => replaced(json, path, isName, text)),
    values.reduce((whole, { path }) => replaced(whole, path, false, text), json),
  ];
}

/** Every text in a value, at any depth: names, members, and of errors message, stack and causes. */
export function textsIn(value: unknown, seen: Set<unknown> = new Set()): readonly string[] {
  if (typeof value === 'string') return [value];
  if (typeof value !== 'object' || value === null || seen.has(value)) return [];
  seen.add(value);
  if (value instanceof Error) {
    const names = Reflect.ownKeys(value).filter((name) => name !== 'stack');
    const members = names.flatMap((name) => [String(name), ...textsIn(Reflect.get(value, name), seen)]);
    return [value.name, ...(value.stack ?? '').split('\n'), ...members];
  }
  return Object.entries(value).flatMap(([name, member]) => [name, ...textsIn(member, seen)]);
}

/** Collects what leaves the library by a way that people read, and judges it. */
export interface Ears {
  readonly hear: (...values: readonly unknown[]) => void;
  readonly logger: Logger;
  /** @param least texts with hostile text in them that have to have been heard: else the test feeds nothing. */
  readonly expectClean: (least: number) => void;
}

export function ears(): Ears {
  const texts: string[] = [];
  const hear = (...values: readonly unknown[]): void => {
    for (const value of values) texts.push(...textsIn(value));
  };
  return {
    hear,
    logger: { debug: hear, info: hear, warn: hear, error: hear },
    expectClean: (least) => {
      expect(texts.filter((text) => text.includes(MARK)).length).toBeGreaterThanOrEqual(least);
      expect(texts.filter((text) => ACTED_ON.test(text) || text.length > MOST)).toEqual([]);
    },
  };
}
