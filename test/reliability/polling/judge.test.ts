import { expect, it } from 'vitest';
import type { Said } from '../market/seller/log.ts';
import type { SellerLine } from '../market/wire.ts';
import type { Line } from '../processes/ledger.ts';
import { judgePolls } from './judge.ts';

const NOTHING = { overlapping: [], crowding: [], afterEnd: [], unaccounted: [] };
const PER_SELLER = 2;

const poll = (id: string, taskId: string, agent = 'one'): Said => ({ what: 'poll', id, taskId, agent });
const polled = (id: string, taskId: string): Said => ({ what: 'polled', id, taskId, status: 'working' });
const cut = (id: string, taskId: string): Said => ({ what: 'cut', id, taskId });
const asks = (taskId: string, turn: number): Line[] => [
  { what: 'turn', key: `turn ${turn}`, pid: 1 },
  { what: 'ask', key: `turn ${turn}`, pid: 1, taskId },
];
const ended: Line[] = [
  {
    what: 'run',
    key: 'end',
    pid: 2,
    run: 1,
    told: { taskId: 'a', status: 'completed', source: 'webhook', resultId: 'buy' },
  },
  { what: 'told', key: 'end', pid: 2, owner: 'x' },
];

/** Asked as often as the seller was, where the buyer's log is not given. */
function verdictOf(said: readonly Said[], ledger?: readonly Line[]): object {
  const log = said.map((line): SellerLine => ({ at: 0, ...line }));
  const asked = log.flatMap((line, index) => (line.what === 'poll' ? asks(line.taskId, index) : []));
  return judgePolls({ log, ledger: ledger ?? asked, perSeller: PER_SELLER });
}

it('the judge of polls finds nothing where they were one by one, answered or cut', () => {
  expect(
    verdictOf([poll('1', 'a'), polled('1', 'a'), poll('2', 'a'), cut('2', 'a'), poll('3', 'a')]),
  ).toEqual(NOTHING);
  // Its connections end with the seller.
  expect(verdictOf([poll('1', 'a'), { what: 'start', pid: 1 }, poll('2', 'a')])).toEqual(NOTHING);
});

it('the judge of polls sees two of one task at once', () => {
  const polls = [poll('1', 'a'), poll('2', 'a'), cut('1', 'a')];
  expect(verdictOf(polls)).toEqual({ ...NOTHING, overlapping: ['a'] });
});

it('the judge of polls sees too many of one seller at once', () => {
  const two = [poll('1', 'a'), poll('2', 'b')];
  expect(verdictOf([...two, poll('3', 'c', 'other')])).toEqual(NOTHING);
  expect(verdictOf([...two, poll('3', 'c')])).toEqual({ ...NOTHING, crowding: ['c'] });
  expect(verdictOf([...two, polled('1', 'a'), poll('3', 'c')])).toEqual(NOTHING);
});

it('the judge of polls sees one that was decided on after the end was completed, and not one that was under way', () => {
  const [turn, ask] = asks('a', 1) as [Line, Line];
  expect(verdictOf([poll('1', 'a')], [turn, ...ended, ask])).toEqual(NOTHING);
  expect(verdictOf([poll('1', 'a')], [...ended, turn, ask])).toEqual({ ...NOTHING, afterEnd: ['a'] });
});

it('the judge of polls sees one that no poller says it has made', () => {
  const polls = [poll('1', 'a'), polled('1', 'a'), poll('2', 'a')];
  expect(verdictOf(polls, asks('a', 1))).toEqual({ ...NOTHING, unaccounted: ['a'] });
});
