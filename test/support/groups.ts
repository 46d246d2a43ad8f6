import { readdirSync, readFileSync } from 'node:fs';
import { join, sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import { formNamed, type Form } from '../reliability/form.ts';

export type { Form };

/** What one `npm run test:<group>` runs; `npm test` runs them all. */
export type Group = 'unit' | 'stores' | 'integration' | 'reliability';

/** By group: what is in it, for who starts it. */
export const GROUPS: Readonly<Record<Group, string>> = {
  unit: 'one part at a time: no server, nothing is built or installed',
  stores: 'every store and queue on its real server (Redis, Postgres, MariaDB)',
  integration: 'the built package: frameworks, examples, consumers, runtimes, the command line',
  reliability: 'crashes, kills, faults, hostile senders, and the model of the store',
};

/** Files by path from `test/`. The first rule that fits decides; what none names is a unit test. */
const RULES: readonly (readonly [RegExp, Group])[] = [
  [/^(fuzz|reliability)\//, 'reliability'],
  [/^reconcile\/(crash|crash-points|crash-states|lives|market|two-processes)\.test\.ts$/, 'reliability'],
  [/^subscriptions\/(controls|crash|faults|together|watch)\.test\.ts$/, 'reliability'],
  [/^(stores|queues)\//, 'stores'],
  [/^cli\/inbox\//, 'stores'],
  [/^serve\/stores\.test\.ts$/, 'stores'],
  [/^repository\/budget(-registrations)?\.test\.ts$/, 'stores'],
  [/^reconcile\/lost-store\.test\.ts$/, 'stores'],
  [/^receiver\/(late-query|stuck-transaction)\.test\.ts$/, 'stores'],
  [/^(adapters|bench|consumers|dev\/page|examples|runtimes)\//, 'integration'],
  [/^cli\/((process|refused|registry|owed|state|serve|dev)\.test\.ts$|probe\/)/, 'integration'],
  [/^repository\/(exports|packed|samples|sizes)\.test\.ts$/, 'integration'],
  [/^vectors\/docs\.test\.ts$/, 'integration'],
];

export const RULE_PATTERNS: readonly RegExp[] = RULES.map(([pattern]) => pattern);

/** Whole files that `npm test` leaves to `npm run test:rows`, with what runs in their place in `npm test`. */
export const ROWS_ONLY: readonly (readonly [RegExp, string])[] = [
  [
    /^reliability\/serve\/serve\.test\.ts$/,
    'reliability/serve/judge, kill on SQLite in mode inbox, and serve/sink against a real HTTP server',
  ],
  [
    /^reliability\/moving\/moving\.test\.ts$/,
    'registrations/moves, whose processes die at each step within one process',
  ],
  [/^cli\/serve\.test\.ts$/, 'serve/serve, in this process'],
  [
    /^examples\/(media-buy|queues|servers)\.test\.ts$/,
    'examples/blocks and examples/readme; bullmq and pg-boss in queues; calls and polls in poll',
  ],
  [/^examples\/dev\.test\.ts$/, 'dev/called-seller and testing/dev-hooks, in this process'],
  [/^examples\/serve\.test\.ts$/, 'serve/sink/http-sink, whose second opinion is a library'],
  [/^serve\/stores\.test\.ts$/, 'serve/serve on SQLite, and each store by its contract'],
  [
    /^dev\/page\//,
    'dev/page-parts, without a browser; dev over HTTP, whose words for each fault are those that the page shows',
  ],
  [/^adapters\/flood\.test\.ts$/, 'adapters/node-limits, and hostile/flood on SQLite'],
  [/^examples\/block-commands\.test\.ts$/, 'cli, in this process'],
  [/^examples\/block-servers\.test\.ts$/, 'examples/blocks, and readme, which need no servers'],
  [/^examples\/(lambda|worker)\.test\.ts$/, 'adapters/lambda, runtimes on workerd'],
  [/^examples\/serve-installed\.test\.ts$/, 'examples/serve, whose consumer is called by the test; serve'],
  [/^examples\/readme-types\.test\.ts$/, 'consumers, which compiles the same program beside others'],
  [
    /^reliability\/faults\/(mysql|postgres|redis)\.test\.ts$/,
    'faults/link on Postgres, faults/sqlite, and settings and schema in stores/*',
  ],
  [/^reliability\/crash-points-mysql\.test\.ts$/, 'the same sweeps on SQLite in crash-points'],
  [/^reconcile\/crash\.test\.ts$/, 'reconcile/market, which has one process, and none that is killed'],
  [
    /^reliability\/rolling\//,
    'the schema tests in stores/*, and kill, whose processes are replaced under load',
  ],
  [
    /^reliability\/runs\/(failover-watched|frozen-transaction)\.test\.ts$/,
    'settings and transaction in stores/*',
  ],
  [/^reliability\/kill\/overtaken\.test\.ts$/, 'kill/bites: a store that does not compare owners is found'],
  [
    /^reliability\/memory\//,
    'calls/memory and keys/memory; caps and retention in the contract of each store',
  ],
  [/^reliability\/suspects\//, 'inbox/suspects, the contract of each store, and poisons of the model'],
];

/** Files that run in every form, otherwise in each: their harness asks for the form, with what differs. */
export const EVERY_FORM: readonly (readonly [RegExp, string])[] = [
  [
    /^cli\/((process|refused|registry|owed|state)\.test\.ts$|inbox\/)/,
    'the command line in this process; in one of its own',
  ],
  [/^codec\/json-reader\.test\.ts$/, 'fewer random texts; two and a half times as many'],
  [/^examples\/readme\.test\.ts$/, 'on an installation that others share; in a project of its own'],
  [/^reliability\/hostile\/flood\.test\.ts$/, 'a small flood on one store; larger ones on each'],
];

/** Files that run in the long form once more, otherwise: their harness asks for the form, with what differs. */
export const LONG_TOO: readonly (readonly [RegExp, string])[] = [
  [/^examples\/blocks\.test\.ts$/, 'on an installation that others share; in a project of its own'],
  [
    /^examples\/(media-buy|queues|registry)\.test\.ts$/,
    'examples on one installation; each installed by itself',
  ],
];

export function groupOf(file: string): Group {
  return RULES.find(([pattern]) => pattern.test(file))?.[1] ?? 'unit';
}

/** The folder `test/`. */
export const TEST_FOLDER: string = fileURLToPath(new URL('..', import.meta.url));

/** Every test file, by its path from `test/`, or those of one group. */
export function testFiles(group?: Group): readonly string[] {
  return readdirSync(TEST_FOLDER, { recursive: true, encoding: 'utf8' })
    .map((file) => file.split(sep).join('/'))
    .filter((file) => file.endsWith('.test.ts') && (group === undefined || groupOf(file) === group))
    .toSorted();
}

/** @throws Error for a name that is none. */
export function groupNamed(name: string): Group {
  if (Object.hasOwn(GROUPS, name)) return name as Group;
  throw new Error(`no group of tests is named ${name}: ${Object.keys(GROUPS).join(', ')}`);
}

const isOf = (list: typeof ROWS_ONLY, file: string): boolean => list.some(([pattern]) => pattern.test(file));

/** True if the file imports one of these names from `test/reliability/form.ts`. */
function imports(file: string, names: string): boolean {
  const text = readFileSync(join(TEST_FOLDER, file), 'utf8');
  return new RegExp(`import \\{[^}]*\\b(${names})\\b[^}]*\\} from '[^']*/form\\.ts'`).test(text);
}

/** By form: which files it runs. */
const RUNS: Readonly<Record<Form, (file: string) => boolean>> = {
  short: (file) => !isOf(ROWS_ONLY, file),
  rows: (file) => isOf([...ROWS_ONLY, ...EVERY_FORM], file) || imports(file, 'ROWS|inThisForm'),
  long: (file) =>
    isOf([...ROWS_ONLY, ...EVERY_FORM, ...LONG_TOO], file) ||
    groupOf(file) === 'reliability' ||
    imports(file, 'LONG|ROWS|inThisForm'),
};

/** Test files of a form, or of one group in it. */
export function filesOf(form: Form, group?: Group): readonly string[] {
  return testFiles(group).filter(RUNS[form]);
}

/** The environment of a run: `TEST_FORM` (`short` by default) and `TEST_GROUP` (all groups by default). */
export interface Selection {
  readonly form: Form;
  readonly group: Group | undefined;
}

/** @throws Error for a form or group that does not exist. */
export function selectionOf(env: Readonly<Record<string, string | undefined>>): Selection {
  const { TEST_FORM: form, TEST_GROUP: group } = env;
  return { form: formNamed(form), group: group ? groupNamed(group) : undefined };
}
