import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { judgeMoves, MOVED, type MovingFacts, type Retirement } from './judge.ts';
import type { MovingLine } from './wire.ts';

const OLD = 'https://old.example/webhooks';
const NEW = 'https://new.example/webhooks';
const DAY = 86_400_000;
const CALL_MS = 2_000;
const of = { agent: 'seller-1', buy: 'buy-1' } as const;

const has = (at: number, base: string, key = ''): MovingLine => ({
  at,
  what: 'has',
  ...of,
  key,
  reports: `${base}/${TOKEN}`,
  push: `${base}/route-p`,
});
const asked = (at: number, key: string, more: object = {}): MovingLine => ({
  at,
  what: 'asked',
  ...of,
  id: `${key} ${at}`,
  operation: 'update_media_buy',
  key,
  says: key,
  ...more,
});
const answered = (at: number, id: string, said = 'completed'): MovingLine => ({
  at,
  what: 'answered',
  id,
  said,
});
const event = (at: number, key: string, status: number, url = `${NEW}/${TOKEN}`): readonly MovingLine[] => [
  { at, what: 'event', ...of, key, url },
  { at, what: 'post', ...of, key, url, answered: status },
];
const ran = (key: string, told?: object): MovingFacts['ledger'] => [
  {
    what: 'run',
    key,
    pid: 1,
    run: 1,
    ...(told && { told: { taskId: '', status: '', source: '', ...told } }),
  },
  { what: 'effect', key, pid: 1, copy: '' },
];

/** A token: four bytes, those of the route, and more. */
const ROUTE = Buffer.alloc(16, 7).toString('base64url');
const TOKEN = Buffer.concat([Buffer.alloc(4, 1), Buffer.alloc(16, 7), Buffer.alloc(16, 9)]).toString(
  'base64url',
);

/** A media buy that has moved, with one event by each URL. */
const LOG: readonly MovingLine[] = [
  has(0, OLD),
  ...event(1, 'a', 200, `${OLD}/${TOKEN}`),
  asked(10, 'k1'),
  has(11, NEW, 'k1'),
  answered(12, 'k1 10'),
  ...event(20, 'b', 200),
];
const GOOD: MovingFacts = {
  log: LOG,
  ledger: [...ran('a'), ...ran('b')],
  completions: [
    { key: 'a', owner: 'x' },
    { key: 'b', owner: 'x' },
  ],
  effects: [],
  retirements: [],
  named: new Set(),
  refusing: new Set(),
  base: NEW,
  callMs: CALL_MS,
  deaths: new Map(),
};
const verdictOf = (facts: Partial<MovingFacts>): object => judgeMoves({ ...GOOD, ...facts });
const after = (...lines: readonly MovingLine[]): Partial<MovingFacts> => ({ log: [...LOG, ...lines] });

/** What is judged of any seller has tests of its own (`processes/judge.test.ts`): these are of moves. */
describe('the judge of moves', () => {
  it('finds nothing where the promise was kept', () => {
    expect(verdictOf({})).toEqual(MOVED);
    // A repeat of the same bytes, with an answer, without one.
    expect(verdictOf(after(asked(13, 'k1'), { at: 14, what: 'gone', id: 'k1 13' }))).toEqual(MOVED);
    // A fault of ours, and an event sent again.
    const again = { at: 21, what: 'post', ...of, key: 'b', url: `${NEW}/${TOKEN}` } as const;
    expect(verdictOf(after({ ...again, answered: 503 }, again))).toEqual(MOVED);
  });

  it('calls an event lost that no handler completed, unless it was sent once and not taken', () => {
    const lost = { completions: GOOD.completions.slice(0, 1) };
    expect(verdictOf(lost)).toEqual({ ...MOVED, lost: ['b'] });
    const [begun, posted] = event(30, 'c', 503);
    const last = [{ ...begun, isLast: true }, posted] as readonly MovingLine[];
    expect(verdictOf(after(...last))).toEqual(MOVED);
    expect(verdictOf(after(...event(30, 'c', 503)))).toEqual({ ...MOVED, lost: ['c'] });
  });

  it('calls an event twice that two owners completed, and the end of a task that two channels did', () => {
    const twice = { completions: [...GOOD.completions, { key: 'b', owner: 'y' }] };
    expect(verdictOf(twice)).toEqual({ ...MOVED, completedTwice: ['b'] });
    const ended: MovingLine = { at: 30, what: 'ended', ...of, key: 'k1', taskId: 't1', status: 'completed' };
    const told = { taskId: 't1', status: 'completed' };
    const once = { ledger: [...GOOD.ledger, ...ran('w', told)] };
    const completions = [...GOOD.completions, { key: 'w', owner: 'x' }];
    expect(verdictOf({ ...after(ended), ...once })).toEqual({ ...MOVED, lost: ['t1'] });
    expect(verdictOf({ ...after(ended), ...once, completions })).toEqual(MOVED);
    // Nobody knows of it any more: its key was over.
    expect(verdictOf({ ...after(ended, asked(10 + DAY, 'k2')), ...once })).toEqual(MOVED);
    const both = {
      ledger: [...once.ledger, ...ran('p', told)],
      completions: [...completions, { key: 'p', owner: 'x' }],
    };
    expect(verdictOf({ ...after(ended), ...both })).toEqual({ ...MOVED, completedTwice: ['t1'] });
  });

  it.each([401, 404, 413])('names a delivery that was answered %i', (status) => {
    const more = {
      completions: [...GOOD.completions, { key: 'c', owner: 'x' }],
      ledger: [...GOOD.ledger, ...ran('c')],
    };
    expect(verdictOf({ ...after(...event(30, 'c', status)), ...more })).toEqual({
      ...MOVED,
      refused: [`c: ${status}`],
    });
  });

  it('names a key under which two different things were said', () => {
    expect(verdictOf(after(asked(13, 'k1', { says: 'other' })))).toEqual({ ...MOVED, otherBytes: ['k1'] });
  });

  it('names an update that was begun before the one before it was over, or its key', () => {
    const second = { ...MOVED, secondKeys: ['k3'] };
    expect(verdictOf(after(asked(30, 'k2'), asked(40, 'k3')))).toEqual(second);
    const submitted = [asked(30, 'k2'), answered(31, 'k2 30', 'submitted')];
    expect(verdictOf(after(...submitted, asked(40, 'k3')))).toEqual(second);
    expect(verdictOf(after(asked(30, 'k2'), answered(31, 'k2 30', 'CONFLICT'), asked(40, 'k3')))).toEqual(
      MOVED,
    );
    expect(verdictOf(after(asked(30, 'k2'), asked(30 + DAY, 'k3')))).toEqual(MOVED);
    // Another media buy's has nothing to do with it.
    expect(verdictOf(after(asked(30, 'k2'), asked(40, 'k3', { buy: 'buy-2' })))).toEqual(MOVED);
  });

  it('names the fifth update of a seller without an answer, within half the time of a call', () => {
    const many = [1, 2, 3, 4, 5].map((n) => asked(30 + n, `m${n}`, { buy: `buy-${n + 1}` }));
    expect(verdictOf(after(...many))).toEqual({ ...MOVED, tooMany: ['m5'] });
    const late = { ...many[4], at: 31 + CALL_MS / 2 } as MovingLine;
    expect(verdictOf(after(...many.slice(0, 4), late))).toEqual(MOVED);
    const free = [...many.slice(0, 4), answered(35, 'm1 31'), ...many.slice(4)];
    expect(verdictOf(after(...free))).toEqual(MOVED);
    const others = many.map((line) => ({ ...line, agent: 'seller-2' }) as MovingLine);
    expect(verdictOf(after(...many.slice(0, 4), ...others.slice(4)))).toEqual(MOVED);
  });

  describe('of the fifth update', () => {
    const many = [1, 2, 3, 4, 5].map((n) => asked(30 + n, `m${n}`, { buy: `buy-${n + 1}`, by: 2 }));
    const begun = (...keys: readonly string[]): MovingFacts['ledger'] => [
      ...GOOD.ledger,
      ...keys.flatMap((key) => [
        { what: 'begin', key, pid: 1 } as const,
        // Whoever goes on with it stores it too.
        { what: 'begin', key, pid: 2 } as const,
      ]),
    ];
    const dead = { deaths: new Map([[1, 30]]) };

    it('excuses one that another process began, which died before it was sent', () => {
      expect(verdictOf({ ...after(...many), ...dead, ledger: begun('m5') })).toEqual(MOVED);
      // It has no place, so that another one may have it.
      expect(verdictOf({ ...after(...many), ...dead, ledger: begun('m2') })).toEqual(MOVED);
    });

    it('excuses none for a death of a process that did not begin it, or that came later', () => {
      const tooMany = { ...MOVED, tooMany: ['m5'] };
      expect(verdictOf({ ...after(...many), ...dead })).toEqual(tooMany);
      expect(verdictOf({ ...after(...many), ledger: begun('m5') })).toEqual(tooMany);
      const later = { deaths: new Map([[1, 36]]) };
      expect(verdictOf({ ...after(...many), ...later, ledger: begun('m5') })).toEqual(tooMany);
      const own = many.map((line) => ({ ...line, by: 1 }) as MovingLine);
      expect(verdictOf({ ...after(...own), ...dead, ledger: begun('m5') })).toEqual(tooMany);
      // What it has sent itself keeps its place.
      const sent = [{ ...many[4], id: 'before', at: 29, by: 1 } as MovingLine];
      const again = asked(30, 'm6', { buy: 'buy-7', by: 2 });
      const five = after(...sent, again, ...many.slice(0, 4));
      expect(verdictOf({ ...five, ...dead, ledger: begun('m5') })).toMatchObject({ tooMany: ['m3', 'm4'] });
    });

    it('excuses as many of a process as it had places of the seller', () => {
      const all = [1, 2, 3, 4, 5, 6, 7, 8, 9].map((n) =>
        asked(30 + n, `m${n}`, { buy: `buy-${n + 1}`, by: 2 }),
      );
      const four = begun('m5', 'm6', 'm7', 'm8');
      expect(verdictOf({ ...after(...all.slice(0, 8)), ...dead, ledger: four })).toEqual(MOVED);
      const five = begun('m5', 'm6', 'm7', 'm8', 'm9');
      expect(verdictOf({ ...after(...all), ...dead, ledger: five })).toEqual({ ...MOVED, tooMany: ['m9'] });
    });
  });

  it('names a media buy that is not where it was to go, unless the plan does and its seller takes no update', () => {
    const log = LOG.filter((line) => line.what !== 'has' || line.at === 0);
    const [named, refusing] = [new Set(['buy-1']), new Set(['buy-1'])];
    expect(verdictOf({ log })).toEqual({ ...MOVED, unmoved: ['buy-1'] });
    expect(verdictOf({ log, named, refusing })).toEqual(MOVED);
    expect(verdictOf({ log, refusing })).toEqual({ ...MOVED, unmoved: ['buy-1'] });
    // What its seller would have taken is not to be named, wherever it is.
    expect(verdictOf({ log, named })).toEqual({ ...MOVED, unmoved: ['buy-1'], namedWrongly: ['buy-1'] });
    expect(verdictOf({ named })).toEqual({ ...MOVED, namedWrongly: ['buy-1'] });
    const half = log.map((line) => (line.what === 'has' ? { ...line, reports: `${NEW}/${TOKEN}` } : line));
    expect(verdictOf({ log: half })).toEqual({ ...MOVED, unmoved: ['buy-1'] });
  });

  it('without a base, where its reports go by the URL of before', () => {
    const { base: _none, ...anywhere } = GOOD;
    expect(judgeMoves(anywhere)).toEqual(MOVED);
    const log = LOG.filter((line) => line.what !== 'has' || line.at === 0);
    expect(judgeMoves({ ...anywhere, log })).toEqual({ ...MOVED, unmoved: ['buy-1'] });
  });

  const retirement: Retirement = {
    at: 11 + DAY,
    agent: 'seller-1',
    base: OLD,
    route: ROUTE,
    isRetired: true,
    isLast: false,
  };
  const name = `seller-1 ${OLD} ${ROUTE}`;

  it.each<readonly [string, Partial<Retirement>, Partial<MovingFacts>, boolean]>([
    ['a day after the last media buy has left it', {}, {}, false],
    ['sooner', { at: 10 + DAY }, {}, true],
    ['of a route of which nobody was told', { route: 'another', at: 12 }, {}, false],
    ['with a media buy on it', { at: 9 * DAY, base: NEW }, {}, true],
    [
      'a day after it was used last',
      { at: 30 + DAY },
      after(...event(30, 'a', 200, `${OLD}/${TOKEN}`)),
      false,
    ],
    ['sooner than that', { at: 29 + DAY }, after(...event(30, 'a', 200, `${OLD}/${TOKEN}`)), true],
    ['whatever the URLs of another seller', { agent: 'seller-2', at: 12 }, {}, false],
  ])('says whether a URL was retired too early: %s', (_is, is, facts, isEarly) => {
    const one = { ...retirement, ...is };
    const early = isEarly ? [`${one.agent} ${one.base} ${one.route}`] : [];
    expect(verdictOf({ ...facts, retirements: [one] })).toEqual({ ...MOVED, retiredEarly: early });
    expect(verdictOf({ ...facts, retirements: [{ ...one, isRetired: false }] })).toEqual(MOVED);
  });

  it('names a URL that was not retired in the end, whatever is named of its seller', () => {
    const retirements = [{ ...retirement, isRetired: false, isLast: true }];
    const unretired = { ...MOVED, unretired: [name] };
    expect(verdictOf({ retirements })).toEqual(unretired);
    const refusing = new Set(['buy-1']);
    expect(verdictOf({ retirements, named: refusing, refusing })).toEqual(unretired);
  });
});

it('the sellers share no code with the buyer', () => {
  const folder = fileURLToPath(new URL('seller', import.meta.url));
  const files = readdirSync(folder).map((file) => `${folder}/${file}`);
  const main = fileURLToPath(new URL('fixtures/seller.ts', import.meta.url));
  const imports = [...files, main].flatMap((file) =>
    [...readFileSync(file, 'utf8').matchAll(/^(?:import|export)\b[^;]*?\bfrom '([^']+)'/gm)].map((match) => ({
      isType: match[0].startsWith('import type'),
      from: match[1] ?? '',
    })),
  );
  // The sellers of the market have the same test.
  const own = /^(\.\/|\.\.\/seller\/|\.\.\/\.\.\/market\/seller\/)[a-z0-9]+\.ts$/;
  const others = imports.filter(({ from }) => from.startsWith('.') && !own.test(from));
  expect(imports.length).toBeGreaterThan(10);
  expect(others.filter(({ isType, from }) => !isType || from !== '../wire.ts')).toEqual([]);
  expect(imports.filter(({ from }) => from.includes('proto-webhooks'))).toEqual([]);
});
