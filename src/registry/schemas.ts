import * as z from 'zod/mini';
import { printableName } from '../codec/printable.ts';
import { RegistryError } from './errors.ts';
import type { StandardSchema } from '../events/event.ts';
import type { BadgeEmbed, DiagnosticRow, Diagnostics } from './types.ts';

const text = z.nullish(z.string());
const number = z.nullish(z.number());
const integer = z.nullish(z.int());

/** A URL that a page may load an image from. */
const httpsUrl = z
  .string()
  .check(z.refine((url) => URL.canParse(url) && new URL(url).protocol === 'https:', 'not an https URL'));

/** 200 of the badge embed endpoint (contract.md §2.2), with the protocol's own `<name>_version`. */
export function badgeSchema<P extends string>(versionMember: string): z.ZodMiniType<BadgeEmbed<P>> {
  const schema = z.looseObject({
    agent_url: z.string(),
    role: z.string(),
    verified: z.boolean(),
    [versionMember]: text,
    badge_svg_url: httpsUrl,
    registry_url: z.string(),
    html: z.string(),
    markdown: z.string(),
  });
  // The name of one member is only known at run time, and so the inferred type is without the others.
  return schema as unknown as z.ZodMiniType<BadgeEmbed<P>>;
}

/** Members of "any JSON" are looked at by nobody. */
const row: z.ZodMiniType<DiagnosticRow<string>> = z.looseObject({
  id: integer,
  run_id: text,
  agent_url: text,
  storyboard_id: text,
  phase_id: text,
  step_id: text,
  task: text,
  step_passed: z.nullish(z.boolean()),
  captured_at: text,
  duration_ms: number,
  request_url: text,
  response_status: integer,
  response_headers_jsonb: z.nullish(z.record(z.string(), z.unknown())),
  extraction_path: text,
  extraction_note: text,
  error_text: text,
  served_by_agent_url: text,
});

/** 200 of the compliance diagnostics endpoint. */
export const diagnosticsSchema: z.ZodMiniType<Diagnostics<string>> = z.looseObject({
  agent_url: z.string(),
  run_id: z.string(),
  count: z.int(),
  diagnostics: z.array(row),
});

/** An object, whatever is in it. */
export const objectSchema: z.ZodMiniType<Readonly<Record<string, unknown>>> = z.looseObject({});

/** `value` itself, where it fits: a schema's copy is not what was sent. @throws RegistryError naming the member. */
export function fitting<T>(schema: z.ZodMiniType<T>, value: unknown): T {
  const { success, error } = schema.safeParse(value);
  if (!success) throw misfit(error.issues[0]?.path);
  return value as T;
}

/** What the caller's schema makes of `value`. @throws RegistryError naming the member. */
export async function parsedBy<Out>(schema: StandardSchema<Out>, value: unknown): Promise<Out> {
  const result = await schema['~standard'].validate(value);
  if (!result.issues) return result.value;
  throw misfit(result.issues[0]?.path?.map((step) => (typeof step === 'object' ? step.key : step)));
}

/** Where an answer does not fit. Not why: a schema's message may quote the value. */
function misfit(path: readonly PropertyKey[] = []): RegistryError {
  const member = path.map((step) => printableName(String(step))).join('.');
  const what = member === '' ? 'the answer is not what the contract says' : `the answer's ${member}`;
  return new RegistryError(
    'invalid_answer',
    member === '' ? what : `${what} is missing or of the wrong type`,
  );
}
