// Makes zod schemas for members of the configuration file, with messages that say what to write. `definition.ts` uses
// them.
import * as z from 'zod';

/** Returns the message about a value: the mistake, and what to write. */
export const say = (
  wrong: string,
  write: string,
): { error: (issue: { readonly input?: unknown }) => string } => ({
  error: ({ input }) =>
    `${input === undefined ? 'is missing' : input === null ? 'is empty' : wrong}. ${write}`,
});

/** Returns the schema of a text that is not empty. */
export const text = (what: string, write: string): z.ZodString => {
  const told = say('is not a text', write);
  return z.string(told).min(1, say('is empty', write)).describe(what);
};

/** Returns the schema of a whole number within limits, with a default. */
export function whole(what: string, min: number, max: number, standard: number): z.ZodDefault<z.ZodNumber> {
  const told = say(`is not a whole number from ${min} to ${max}`, `Write one, e.g. ${standard}.`);
  return z
    .number(told)
    .refine(Number.isSafeInteger, told)
    .min(min, told)
    .max(max, told)
    .meta({ type: 'integer' })
    .describe(what)
    .default(standard);
}

/** Returns the schema of true or false; the default is false. */
export const flag = (what: string): z.ZodDefault<z.ZodBoolean> =>
  z.boolean(say('is not true or false', 'Write true or false.')).describe(what).default(false);

/** Returns the schema of one word out of several. */
export function choice<const T extends readonly [string, ...string[]]>(
  what: string,
  ...of: T
): z.ZodType<T[number]> {
  const names = of.join(' or ');
  return z.enum(of, say(`is not ${names}`, `Write ${names}.`)).describe(what);
}

/** Returns the schema of a mapping with exactly these members. */
export function members<S extends z.core.$ZodLooseShape>(
  what: string,
  example: string,
  shape: S,
): z.ZodObject<S, z.core.$strict> {
  const known = `Known here: ${Object.keys(shape).join(', ')}.`;
  const told = say('is not a mapping', `Write ${example}.`);
  return z
    .strictObject(shape, {
      error: (issue) => (issue.code === 'unrecognized_keys' ? `is not known. ${known}` : told.error(issue)),
    })
    .describe(what);
}

/** Returns the schema of a list that is not empty. */
export const list = <T extends z.ZodType>(what: string, of: T, write: string, max = 10_000): z.ZodArray<T> =>
  z
    .array(of, say('is not a list', write))
    .min(1, say('is an empty list', write))
    .max(max, say(`has more than ${max} items`, write))
    .describe(what);
