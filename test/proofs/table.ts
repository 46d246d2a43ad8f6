// The table of proofs: which tests each one runs, what it counts, and which code it is about.
// `npm run proofs` runs them, `npm run check:figures` asks it whose code has changed, and the pages take their words from it.

/** Folders and files of `src` by what they have to do with. */
const RECEIVING = [
  'adapters',
  'auth',
  'codec',
  'config',
  'crypto',
  'events',
  'inbox',
  'keys',
  'receiver',
  'shared',
  'stages',
  'index.ts',
] as const;
const STORES = ['stores', 'states', 'windows'] as const;
const CALLING = ['registrations', 'poll', 'calls'] as const;
/** What every command of the command line runs. */
const COMMAND_LINE = ['cli/main.ts', 'cli/program.ts', 'cli/shell.ts', 'cli/files.ts'] as const;

/** A proof: tests that take too long for each day, and what they count. */
export interface Proof {
  /** In the words of the page. */
  readonly title: string;
  /** Folders and files of `src`: a row is old when code of them has changed. */
  readonly about: readonly string[];
  /** A part of the tests' path, for vitest. */
  readonly tests: string;
  /** `short` for tests that have one form, which `npm test` runs too. Absent: `long`. */
  readonly form?: 'short' | 'long';
  /** A pattern of test names; absent: all of the files. */
  readonly only?: string;
  /** Figures that say what was driven, each with its words; absent: the tests that passed. */
  readonly driven?: Readonly<Record<string, string>>;
  /** True if the figures of its rows add up, as states of worlds do. */
  readonly adds?: true;
  /** Figures that have to be 0, each with its words. */
  readonly found?: Readonly<Record<string, string>>;
  /** True if the packed page has it: what a user's events went through. */
  readonly isPacked?: true;
}

const KEPT = { lost: 'lost', completedTwice: 'completed twice', effectsTwice: 'effects twice' } as const;

/** By the names that `npm run proofs` takes, in the order of the page. */
export const PROOFS = {
  model: {
    title: 'Every state of the store’s rules',
    about: ['stores/rules', 'stores/memory', 'stores/memory.ts', 'states', 'windows'],
    tests: 'test/reliability/model.test.ts',
    only: 'nothing acknowledged is lost',
    driven: { states: 'states', steps: 'steps' },
    adds: true,
  },
  plans: {
    title: 'Every state of plans on rows that others change',
    about: ['stores/rules', 'stores/optimistic', 'states', 'windows'],
    tests: 'test/reliability/model-driver.test.ts',
    only: 'nothing acknowledged is lost',
    driven: { states: 'states', steps: 'steps' },
    adds: true,
  },
  operations: {
    title: 'Every order of the steps of a call’s life',
    about: [...CALLING, 'stores/rules'],
    tests: 'test/reliability/operations',
    only: 'what the seller did is never forgotten',
    driven: { states: 'states' },
    adds: true,
  },
  'every-order': {
    title: 'Every order of the round trips of calls that meet',
    about: [...STORES],
    tests: 'test/reliability/every-order',
  },
  'random-calls': {
    title: 'Random calls, as memory answers them',
    about: [...STORES],
    tests: 'test/reliability/random-calls',
    only: 'random calls on',
  },
  races: {
    title: 'Races, each condition taken out',
    about: [...STORES],
    tests: 'races.test.ts',
    form: 'short',
  },
  'crash-points': {
    title: 'A receiver dies at each store call, commit, effect and reply',
    about: [...RECEIVING, ...STORES],
    tests: 'test/reliability/crash-points',
  },
  kill: {
    title: 'Processes killed under load',
    about: [...RECEIVING, ...STORES],
    tests: 'test/reliability/kill/kill.test.ts',
    driven: { acknowledged: 'events', kills: 'kills', deaths: 'own deaths' },
    found: KEPT,
    isPacked: true,
  },
  overtaken: {
    title: 'Processes that stop in handlers whose events others complete meanwhile',
    about: [...RECEIVING, ...STORES],
    tests: 'test/reliability/kill/overtaken',
    driven: {
      acknowledged: 'events',
      pausesInTransaction: 'stops in a transaction',
      overtakenInTransaction: 'overtaken',
    },
    found: KEPT,
  },
  channels: {
    title: 'One task by webhook, answer and poll, under kills',
    about: [...RECEIVING, ...STORES, 'registrations'],
    tests: 'test/reliability/channels',
    only: 'handled and completed once',
    driven: { tasks: 'tasks', kills: 'kills', deaths: 'own deaths' },
    found: KEPT,
    isPacked: true,
  },
  market: {
    title: 'Calls to a seller that fails in every way, both killed',
    about: [...RECEIVING, ...STORES, ...CALLING],
    tests: 'test/reliability/market/market.test.ts',
    only: 'each result is handled once',
    driven: { tasks: 'orders taken on', kills: 'kills', sellerKills: 'kills of the seller' },
    found: KEPT,
    isPacked: true,
  },
  polling: {
    title: 'Pollers killed amid their polls',
    about: [...RECEIVING, ...STORES, ...CALLING],
    tests: 'test/reliability/polling/polling.test.ts',
    only: 'each task ends and is handled once',
    driven: { tasks: 'tasks', polls: 'polls', kills: 'kills' },
    found: { ...KEPT, overlapping: 'polls at once', crowding: 'over `perSeller`', afterEnd: 'after the end' },
    isPacked: true,
  },
  'poll-hour': {
    title: 'An hour of polls by three processes',
    about: [...RECEIVING, ...STORES, ...CALLING],
    tests: 'test/reliability/poll-hour',
    only: 'polls each task once at a time',
    driven: { tasks: 'tasks', polls: 'polls' },
  },
  reports: {
    title: 'Report windows: a market of sellers, 13 months, buyers killed',
    about: [...RECEIVING, ...STORES, 'reconcile', 'registrations', 'calls'],
    tests: 'test/reconcile/crash.test.ts',
    driven: { windows: 'windows', kills: 'kills', byPull: 'pulled' },
    isPacked: true,
  },
  lives: {
    title: 'Impairments and ends: a market of 30 days, buyers that die',
    about: [...RECEIVING, ...STORES, 'reconcile', 'registrations', 'calls'],
    tests: 'test/reconcile/lives.test.ts',
    only: 'are to the buyer what they are to their sellers',
    driven: { buys: 'media buys', judged: 'states judged', kills: 'deaths' },
    isPacked: true,
  },
  subscriptions: {
    title: 'A death at each step of a change of subscriptions',
    about: [...RECEIVING, ...STORES, 'registrations', 'calls'],
    tests: 'test/subscriptions/crash.test.ts',
    driven: { deaths: 'deaths' },
    adds: true,
  },
  moving: {
    title: 'URLs and credentials that move, both sides killed',
    about: [...RECEIVING, ...STORES, ...CALLING],
    tests: 'test/reliability/moving/moving.test.ts',
    only: 'with kill -9 at every step',
    driven: { buys: 'media buys', events: 'events', deaths: 'own deaths', kills: 'kills' },
    found: { ...KEPT, refused: 'deliveries refused', unmoved: 'not moved' },
    isPacked: true,
  },
  serve: {
    title: '`serve` and its sink, both killed',
    about: [...RECEIVING, ...STORES, 'serve', 'cli/serve', ...COMMAND_LINE],
    tests: 'test/reliability/serve/serve.test.ts',
    only: 'kill -9',
    driven: { acknowledged: 'events', killsOfServe: 'kills of serve', killsOfSink: 'of the sink' },
    found: { lost: 'lost', backwards: 'out of order', dead: 'DEAD' },
    isPacked: true,
  },
  suspects: {
    title: 'Handlers that end their process, and a store that hangs',
    about: [...RECEIVING, ...STORES],
    tests: 'test/reliability/suspects',
    driven: { events: 'events', faults: 'deaths or hangs' },
    found: { lost: 'lost', twice: 'completed twice' },
  },
  stampede: {
    title: 'One event, 200 times at once',
    about: [...RECEIVING, ...STORES],
    tests: 'test/reliability/stampede',
    driven: { keys: 'events', copies: 'copies each' },
    found: KEPT,
  },
  failovers: {
    title: "A failover of Postgres with durability `'failover'`",
    about: [...RECEIVING, ...STORES],
    tests: 'test/reliability/runs/failover-watched',
    driven: { events: 'events', faults: 'answers of 503' },
    found: { lost: 'lost', twice: 'twice' },
    isPacked: true,
  },
  'lost-stores': {
    title: 'An empty store in place of the expected one',
    about: [...RECEIVING, ...STORES],
    tests: 'test/reliability/runs/amnesia',
    driven: { events: 'events' },
    found: { lost: 'lost', twice: 'twice' },
  },
  clocks: {
    title: 'Clocks that are set back',
    about: [...RECEIVING, ...STORES],
    tests: 'test/reliability/runs/clock-back',
    driven: { events: 'events' },
    found: { lost: 'lost', twice: 'twice' },
  },
  frozen: {
    title: 'Processes that freeze inside `ctx.transaction`',
    about: [...RECEIVING, ...STORES],
    tests: 'test/reliability/runs/frozen-transaction',
    driven: { events: 'events' },
    found: { lost: 'lost', twice: 'twice' },
  },
  unfair: {
    title: 'A seller that fills the queue, beside another one',
    about: [...RECEIVING, ...STORES],
    tests: 'test/reliability/runs/unfair-seller',
  },
  rolling: {
    title: 'A build deployed over itself under load',
    about: [...RECEIVING, ...STORES],
    tests: 'test/reliability/rolling',
  },
  memory: {
    title: 'Memory of one process',
    about: [...RECEIVING, ...STORES],
    tests: 'test/reliability/memory',
    only: 'holds no more',
    driven: { events: 'events', growthKiB: 'KiB more than after the first 50,000' },
  },
  faults: {
    title: 'Stores that fail in every way that they have',
    about: [...RECEIVING, ...STORES],
    tests: 'test/reliability/faults',
  },
  hostile: {
    title: 'Floods by hostile sellers',
    about: [...RECEIVING, ...STORES],
    tests: 'test/reliability/hostile',
  },
  fuzz: {
    title: 'Mutated deliveries, answers and key documents',
    about: [...RECEIVING, ...STORES, ...CALLING],
    tests: 'test/fuzz',
    driven: { inputs: 'inputs', minutes: 'minutes of key documents' },
    adds: true,
    found: { findings: 'findings' },
    isPacked: true,
  },
  doors: {
    title: 'SIGTERM at each door',
    about: [...RECEIVING, ...STORES],
    tests: 'test/adapters/sigterm.test.ts',
    form: 'short',
  },
  runtimes: {
    title: 'One suite on every runtime',
    about: [...RECEIVING, ...STORES, 'registry', 'sender'],
    tests: 'test/runtimes',
  },
  planted: {
    title: 'Faults planted in the rules',
    about: [...RECEIVING, ...STORES, ...CALLING],
    tests: 'test/planted',
  },
} as const satisfies Readonly<Record<string, Proof>>;

export type ProofName = keyof typeof PROOFS;

export const PROOF_NAMES = Object.keys(PROOFS) as readonly ProofName[];

/** @throws Error that lists the names. */
export function proofNamed(name: string): Proof {
  if (Object.hasOwn(PROOFS, name)) return PROOFS[name as ProofName];
  throw new Error(`no proof is named ${name}: ${PROOF_NAMES.join(', ')}`);
}
