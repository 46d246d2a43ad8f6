import { GENERATORS } from './codes.ts';
import { draftAt, ENDPOINTS, requestOf, type Endpoint } from './draft.ts';
import { inputOf, type Input } from './inputs.ts';
import { live } from './lives.ts';
import { randomOf } from '../reliability/processes/random.ts';
import { SIGNERS } from './sellers.ts';
import { WAYS, type OpenWay, type FuzzedAnswer, type Way } from './ways.ts';

export interface FuzzOptions {
  readonly seed: number;
  readonly inputs: number;
  /** Findings after which a run ends. 10. */
  readonly most?: number;
}

export interface FuzzReport {
  /** Inputs by the code in which they ended, `taken` for those that were taken. */
  readonly counts: ReadonlyMap<string, number>;
  /** What is wrong, with what it takes to see it again. */
  readonly findings: readonly string[];
}

/** Receivers are made anew after so many inputs, so that no store grows without end. */
const BATCH = 500;

type Opened = ReadonlyMap<Way, Readonly<Record<Endpoint, OpenWay>>>;

/** A good delivery of each key first: by then it is known that `publicUrl` is right, and what fails is final. */
async function warm(way: OpenWay, endpoint: Endpoint, seed: number): Promise<void> {
  for (const [index, signer] of SIGNERS.entries()) {
    const draft = draftAt(endpoint, randomOf(seed + index));
    draft.signer = signer;
    // oxlint-disable-next-line no-await-in-loop -- one after the other, as all deliveries of a way
    const { status } = await way.deliver(requestOf(draft));
    if (status !== 200) throw new Error(`a good delivery at ${endpoint} was answered ${status}`);
  }
}

/** A receiver that knows by a good delivery that its URL is right, where a good delivery can be sent that way. */
export async function openWarm(way: Way, endpoint: Endpoint, seed: number): Promise<OpenWay> {
  const open = await way.open(endpoint);
  if (way.takes(endpoint, requestOf(draftAt(endpoint, randomOf(seed))))) await warm(open, endpoint, seed);
  return open;
}

async function openAll(seed: number): Promise<Opened> {
  const opened = WAYS.map(async (way) => {
    const endpoints = await Promise.all(
      ENDPOINTS.map(async (endpoint) => [endpoint, await openWarm(way, endpoint, seed)] as const),
    );
    return [way, Object.fromEntries(endpoints) as Record<Endpoint, OpenWay>] as const;
  });
  return new Map(await Promise.all(opened));
}

const closeAll = (opened: Opened): Promise<unknown> =>
  Promise.all(
    [...opened.values()].flatMap((endpoints) =>
      Object.values(endpoints).map((open) => open[Symbol.asyncDispose]()),
    ),
  );

const told = ({ status, code, wwwAuthenticate }: FuzzedAnswer): string =>
  [status, code, wwwAuthenticate].filter((part) => part !== undefined).join(' ');

const isKnown = (code: string): boolean => code === 'taken' || Object.hasOwn(GENERATORS, code);

/** By every way that takes it. What is thrown is a finding like any other. */
async function verdicts(
  opened: Opened,
  { endpoint, request }: Input,
  index: number,
): Promise<Map<string, FuzzedAnswer>> {
  const answers = [...opened]
    .filter(([way]) => index % (way.every ?? 1) === 0 && way.takes(endpoint, request))
    .map(async ([way, endpoints]): Promise<[string, FuzzedAnswer]> => {
      const thrown = (error: unknown): FuzzedAnswer => ({
        status: 0,
        code: `threw ${String(error)}`,
        wwwAuthenticate: undefined,
      });
      return [way.name, await endpoints[endpoint].deliver(request).catch(thrown)];
    });
  return new Map(await Promise.all(answers));
}

/** What is wrong about the answers to a delivery; undefined where nothing is. */
function problem(
  expected: ReadonlySet<string> | undefined,
  answers: ReadonlyMap<string, FuzzedAnswer>,
): string | undefined {
  const [first] = answers.values();
  if (!first) return 'no way takes it';
  const all = [...answers].map(([name, verdict]) => `${name}: ${told(verdict)}`).join('; ');
  if (new Set([...answers.values()].map(told)).size > 1) return `the ways differ: ${all}`;
  if (!isKnown(first.code)) return `an unknown code: ${all}`;
  if (expected && !expected.has(first.code))
    return `${told(first)}, where ${[...expected].join(' or ')} is right`;
  return undefined;
}

const shown = ({ endpoint, mutations, request }: Input): string =>
  `at ${endpoint}, ${mutations.join(' + ') || 'nothing changed'}: ${request.method} ${request.target} ${JSON.stringify(request.headers)} ${JSON.stringify(Buffer.from(request.body).toString('latin1')).slice(0, 2_000)}`;

/** Counts what a delivery came to, and keeps what is wrong with it. */
type Note = (
  expected: ReadonlySet<string> | undefined,
  answers: ReadonlyMap<string, FuzzedAnswer>,
  what: () => string,
) => void;

interface Notes extends FuzzReport {
  readonly note: Note;
  readonly enough: () => boolean;
}

function createNotes({ seed, most = 10 }: FuzzOptions): Notes {
  const counts = new Map<string, number>();
  const findings: string[] = [];
  return {
    counts,
    findings,
    enough: () => findings.length >= most,
    note(expected, answers, what) {
      const found = problem(expected, answers);
      if (found !== undefined) findings.push(`seed ${seed}, ${what()}: ${found}`);
      const code = answers.values().next().value?.code ?? 'none';
      counts.set(code, (counts.get(code) ?? 0) + 1);
    },
  };
}

async function fuzzInputs({ seed, inputs }: FuzzOptions, { note, enough }: Notes): Promise<void> {
  for (let start = 0; start < inputs && !enough(); start += BATCH) {
    const opened = await openAll(seed + start);
    for (let index = start; index < Math.min(inputs, start + BATCH) && !enough(); index += 1) {
      const input = inputOf(seed, index);
      note(input.expected, await verdicts(opened, input, index), () => `input ${index} ${shown(input)}`);
    }
    await closeAll(opened);
  }
}

/** One to so many inputs. */
const INPUTS_A_LIFE = 50;
const LIVING: readonly Way[] = WAYS.filter(({ name }) => ['native', 'two arguments', 'node'].includes(name));

async function fuzzLives({ seed, inputs }: FuzzOptions, { note, enough }: Notes): Promise<void> {
  for (let number = 0; number * INPUTS_A_LIFE < inputs && !enough(); number += 1) {
    for (const { expected, answers, what } of await live(seed, number, LIVING))
      note(expected, answers, () => what);
  }
}

/**
 * Deliveries that are wrong in one way or several, each by every engine, door and the call with two arguments, which have
 * to agree and to answer as the mutation says; then receivers with small caps. The same seed gives the same deliveries.
 */
export async function fuzz(options: FuzzOptions): Promise<FuzzReport> {
  const notes = createNotes(options);
  await fuzzInputs(options, notes);
  await fuzzLives(options, notes);
  return notes;
}
