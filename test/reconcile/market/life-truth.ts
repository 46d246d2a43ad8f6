import type { Event } from '../../../src/events/index.ts';
import type { Alarm } from '../../../src/index.ts';
import type { Account, StreamAccount } from '../../../src/reconcile/index.ts';
import type { JsonObject } from '../../../src/registrations/index.ts';
import { openTaskOf } from './life-seller.ts';
import {
  DAY,
  type Fire,
  finalDueOf,
  HOUR,
  type Impairment,
  isAsked,
  isEnded,
  type Life,
  MINUTE,
  isNamed,
  promises,
  stepAt,
  wordOfEnd,
} from './lives.ts';
import { agentOf } from './plan.ts';
import type { Posted } from './traffic.ts';
import { type Say, sayingTo } from './truth.ts';
import type { Span } from './zones.ts';

/*
 * What is true of impairments, ends and totals, by what the sellers know: what the handlers of the buyer keep, its account and its
 * alarms are compared with it.
 */

/** A webhook of an impairment has so much time before a snapshot may tell what it tells. Ms. */
const ON_ITS_WAY = 9 * MINUTE;

export interface LifeTruth {
  readonly wrong: string[];
  /** Events of which it is not known whether the receiver has them: told by a call. By key. */
  readonly unsure: ReadonlyMap<string, (isStored: boolean) => void>;
  readonly agentOf: (key: string) => string;
  /** What became of a try; of reports that are no final ones nothing is noted. */
  readonly delivered: (key: string, posted: Pick<Posted, 'isStored'>) => void;
  /** The buyer's handler. @returns false for an event that is of a window. @throws Error by the plan. */
  readonly handle: (event: Event, now: number) => boolean;
  readonly alarmed: (alarm: Alarm, now: number) => void;
  /** A seller is asked by `get_media_buys`. */
  readonly asked: (agentUrl: string, args: JsonObject, now: number) => void;
  /** No process of the buyer lives then; or one of them has died, and may have taken an alarm with it. */
  readonly disturbed: (span: Span, how: 'dark' | 'kill') => void;
  /** The buyer has lost its store, and what its handlers kept; of these it knows again. */
  readonly rebuilt: (known: ReadonlySet<Life>, now: number) => void;
  /** What `discover` gave of one account, when nothing of it was known. */
  readonly discovered: (own: readonly Life[], found: Found, now: number) => void;
  /** What is wrong with an account, and with what the handlers keep. It is not kept: see `Truth`. */
  readonly compare: (accounts: readonly Account[], now: number) => readonly string[];
  readonly keep: (found: readonly string[]) => void;
  readonly atEnd: (now: number) => void;
  readonly figures: () => LifeFigures;
}

export interface LifeFigures {
  readonly impairments: number;
  readonly toldByWebhook: number;
  readonly toldByPull: number;
  readonly missedAlarms: number;
  readonly finals: { readonly received: number; readonly absent: number };
  readonly differences: number;
  readonly snapshots: number;
  readonly questions: number;
  readonly judged: number;
}

/** What `discover` gives, as far as it is judged. */
export interface Found {
  readonly mediaBuys: readonly { readonly mediaBuyId: string; readonly usesOurUrl: boolean | undefined }[];
  readonly tasks: readonly string[];
  /** Nothing was left out. */
  readonly isWhole: boolean;
}

/** What the buyer's handler keeps of an impairment: the latest by its instant. */
interface Kept {
  readonly observedAt: number;
  /** undefined: it has ended. */
  readonly to: string | undefined;
}

interface Known {
  readonly life: Life;
  readonly impairment: Impairment;
  kept: Kept | undefined;
  /** An event of it came last then. */
  touchedAt: number;
  /** Keys of the pulled events that were handled, with what they say. */
  readonly pulled: Map<string, string>;
  readonly alarms: number[];
}

export interface LifeTruthOptions {
  readonly lives: readonly Life[];
  readonly begin: number;
  readonly snapshotMs: number;
  /** How late the buyer may look. Ms. */
  readonly lookMs: number;
}

const iso = (ms: number): string => new Date(ms).toISOString();

export function createLifeTruth({ lives, begin, snapshotMs, lookMs }: LifeTruthOptions): LifeTruth {
  const wrong: string[] = [];
  const say = sayingTo(wrong);
  const nameOf = (agent: string, ...ids: readonly string[]): string => [agent, ...ids].join(' ');
  const byBuy = new Map(lives.map((life) => [nameOf(agentOf(life.buy), life.buy.id), life]));
  const known = new Map<string, Known>();
  for (const life of lives) {
    for (const impairment of life.impairments) {
      known.set(nameOf(agentOf(life.buy), life.buy.id, impairment.id), {
        life,
        impairment,
        kept: undefined,
        touchedAt: 0,
        pulled: new Map(),
        alarms: [],
      });
    }
  }
  const ofLife = new Map(lives.map((life) => [life, [...known.values()].filter((one) => one.life === life)]));
  const fires = new Map<string, { readonly of: Known; readonly fire: Fire }>();
  for (const of of known.values()) for (const fire of of.impairment.fires) fires.set(fire.key, { of, fire });
  const finals = new Map<string, Life>();
  for (const life of lives) for (const { key } of life.finals) finals.set(key, life);
  const accepted = new Map<string, number>();
  const unsure = new Map<string, (isStored: boolean) => void>();
  const throws = new Map<string, number>();
  const disturbances: { readonly span: Span; readonly how: 'dark' | 'kill' }[] = [];
  const alarms = new Map<string, number>();
  const calls = new Map<string, number>();
  let gone: (life: Life) => boolean = () => false;
  let since = begin;
  const figures = { toldByWebhook: 0, toldByPull: 0, snapshots: 0, questions: 0, judged: 0 };

  /** What a seller says is at the handlers so long after: two snapshots, and what may come between. */
  const lagOf = ({ seller: { ageMs, isPatchy } }: Life): number =>
    2 * (snapshotMs + lookMs) + ageMs + 15 * MINUTE + (isPatchy ? 3 * HOUR : 0);
  const isCalm = (from: number, until: number, how: 'dark' | 'kill' = 'dark'): boolean =>
    from >= since &&
    !disturbances.some(
      ({ span, how: is }) => (is === how || is === 'dark') && span.start < until && span.end > from,
    );
  const truthAt = (life: Life, impairment: Impairment, at: number): string | undefined =>
    isEnded(life, at) ? undefined : stepAt(impairment, at)?.to;

  const judgeStates = (life: Life, now: number, say: Say): void => {
    const { seller } = life;
    if (!isAsked(seller)) return;
    for (const { impairment, kept, touchedAt } of ofLife.get(life) ?? []) {
      const { steps } = impairment;
      const last = steps.findLastIndex(({ at }) => at <= now);
      // What a webhook has told stands, however old answers are that say so.
      const isTold =
        seller.saysAge &&
        !isEnded(life, now) &&
        impairment.fires.some(({ key, step }) => step === last && accepted.has(key));
      const from = now - lagOf(life) + (isTold ? seller.ageMs : 0);
      if (!isCalm(from, now)) continue;
      const hasChanged =
        impairment.steps.some(({ at }) => from < at && at <= now) ||
        (life.end.at > from && life.end.at <= now);
      if (hasChanged || touchedAt > from) continue;
      const is = truthAt(life, impairment, now);
      // An old answer that says nothing of its age is taken for what is: but what has ended is not impaired.
      if (seller.ageMs >= HOUR && !seller.saysAge && !isEnded(life, from)) continue;
      figures.judged += 1;
      if (kept?.to !== is) {
        say(
          `${iso(now)} ${impairment.id}: the handlers have ${kept?.to ?? 'nothing'}, and it is ${is ?? 'nothing'}`,
        );
      }
    }
  };

  const judgeFinal = (life: Life, stream: StreamAccount, now: number, say: Say): void => {
    const { buy, finals: reports, seller } = life;
    const due = finalDueOf(life);
    const slack = lagOf(life) + HOUR;
    if (buy.isSilent) {
      if (stream.final !== undefined)
        say(`${iso(now)} ${buy.id}: final is ${stream.final}, and it has no reports`);
      return;
    }
    const came = Math.min(...reports.map(({ key }) => accepted.get(key) ?? Infinity));
    const told = alarms.get(`final_absent ${agentOf(buy)} ${buy.id}`) ?? 0;
    if (came <= now && came < due - HOUR && told > 0)
      say(`${iso(now)} ${buy.id}: final came in time, and is said to be absent`);
    if (now < due && told > 0) say(`${iso(now)} ${buy.id}: final is said to be absent before it is due`);
    if (told > 1) say(`${iso(now)} ${buy.id}: final is said to be absent ${told} times`);
    if (!isCalm(due, due + slack) || now < due + slack || seller.ageMs >= HOUR) return;
    const is = came <= now ? 'received' : 'absent';
    if (came <= now - slack || came === Infinity) {
      if (stream.final !== is) say(`${iso(now)} ${buy.id}: final is ${stream.final}, and was ${is}`);
    }
    if (came > due + slack && told === 0 && isCalm(due, due + slack, 'kill'))
      say(`${iso(now)} ${buy.id}: final is absent, and nobody was told`);
  };

  const judgeEnd = (life: Life, stream: StreamAccount, now: number, say: Say): void => {
    const { buy, totals } = life;
    const told = alarms.get(`totals_differ ${agentOf(buy)} ${buy.id}`) ?? 0;
    if (told > (totals.isDifferent ? 1 : 0))
      say(`${iso(now)} ${buy.id}: totals are ${totals.name}, and said ${told} times to differ`);
    const isClosed = stream.closedAt !== undefined;
    if (isClosed && !isEnded(life, now)) say(`${iso(now)} ${buy.id}: is closed before its end`);
    if (isClosed && totals.isDifferent && told === 0)
      say(`${iso(now)} ${buy.id}: totals are ${totals.name}, and nobody was told`);
    const due = finalDueOf(life) + lagOf(life) + DAY;
    const isWhole = stream.missing.length === 0 && stream.held.length === 0;
    // Nobody asks what has become of it.
    const isUnknown = buy.isSilent && !isAsked(life.seller);
    if (!isClosed && !isUnknown && isWhole && now > due && isCalm(due - DAY, due))
      say(
        `${iso(now)} ${buy.id}: has ended, and is not closed ${JSON.stringify([life.end, iso(life.end.at), stream])}`,
      );
  };

  const judgeBudget = (now: number, say: Say): void => {
    for (const [name, count] of calls) {
      const [kind = '', agent = '', account = '', day = ''] = name.split(' ');
      if (kind !== 'snapshot') continue;
      const own = lives.filter(({ buy }) => agentOf(buy) === agent && (buy.account ?? '') === account);
      // A process that died at a question has asked it.
      const died = disturbances.filter(({ span }) => Math.floor(span.start / DAY) === Number(day));
      const most = (DAY / snapshotMs) * Math.ceil(own.length / 100) + died.length;
      if (count > most) say(`${iso(now)} ${name}: ${count} calls, and ${most} are allowed`);
    }
  };

  const idOf = (alarm: Alarm): string => String(alarm['id'] ?? alarm['stateId'] ?? alarm['impairmentId']);

  const truth: LifeTruth = {
    wrong,
    unsure,
    agentOf: (key) => {
      const life = fires.get(key)?.of.life ?? finals.get(key);
      return life ? agentOf(life.buy) : '';
    },
    delivered: (key, { isStored }) => {
      if (!fires.has(key) && !finals.has(key)) return;
      if (isStored === undefined) {
        const at = Date.now();
        unsure.set(key, (is) => {
          unsure.delete(key);
          // What a handler was given was stored, also where its record is not kept any more.
          if ((is || throws.has(key)) && !accepted.has(key)) accepted.set(key, at);
        });
        return;
      }
      // A later try that reached nobody says nothing of those before it.
      if (!isStored) return;
      unsure.delete(key);
      if (!accepted.has(key)) accepted.set(key, Date.now());
    },
    handle: (event, now) => {
      const { idempotencyKey: key, source, sender } = event;
      if (event.kind === 'delivery-report') {
        const own = finals.get(key);
        return own !== undefined && !own.isFinalOwed;
      }
      if (event.kind !== 'other' || event.family !== 'impairment') return false;
      const { state } = event;
      const fire = fires.get(key);
      if (!state?.mediaBuyId) {
        // Which media buy is meant, a buyer that has lost its store can't know.
        if (since === begin) say(`${iso(now)} ${key}: an impairment of no media buy`);
        return true;
      }
      const of = known.get(nameOf(sender, state.mediaBuyId, state.id));
      if (!of) {
        say(`${iso(now)} ${key}: an impairment that is none: ${state.mediaBuyId} ${state.id}`);
        return true;
      }
      const left = throws.get(key) ?? fire?.fire.throws ?? 0;
      const isFirst = !throws.has(key);
      throws.set(key, left - 1);
      of.touchedAt = now;
      if (left > 0) throw new Error('by the plan');
      const observedAt = Date.parse(state.observedAt);
      const word =
        event.notification && 'transition' in event.notification
          ? event.notification.transition?.to
          : undefined;
      const to = state.ended || word === wordOfEnd(of.life.seller) ? undefined : (word ?? '');
      if (source === 'pull' && isFirst) {
        const says = `${state.ended ? 'ended' : to} ${observedAt}`;
        if ([...of.pulled.values()].includes(says))
          say(`${iso(now)} ${of.impairment.id}: ${says} was pulled twice`);
        of.pulled.set(key, says);
      }
      if (isFirst) figures[source === 'pull' ? 'toldByPull' : 'toldByWebhook'] += 1;
      if (!of.kept || observedAt >= of.kept.observedAt) of.kept = { observedAt, to };
      return true;
    },
    alarmed: (alarm, now) => {
      const { code, sender, mediaBuyId } = alarm as Alarm & {
        readonly sender?: string;
        readonly mediaBuyId?: string;
      };
      if (code === 'impairment_missed') {
        const of = known.get(nameOf(String(sender), String(mediaBuyId), idOf(alarm)));
        if (of) of.alarms.push(now);
        else say(`${iso(now)} an alarm about no impairment: ${JSON.stringify(alarm)}`);
        return;
      }
      // Sellers answer for each window that is due.
      if (code === 'report_missing' || code === 'report_unrecoverable' || code === 'stream_unverifiable') {
        say(`${iso(now)} ${mediaBuyId}: a false alarm, ${code}`);
      }
      const name = `${code} ${sender} ${mediaBuyId}`;
      alarms.set(name, (alarms.get(name) ?? 0) + 1);
    },
    asked: (agentUrl, args, now) => {
      const ids = (args['media_buy_ids'] ?? []) as readonly string[];
      const { cursor } = (args['pagination'] ?? {}) as { readonly cursor?: string };
      const { account_id: account = '' } = (args['account'] ?? {}) as { readonly account_id?: string };
      if (cursor !== undefined || ids.length === 0) return;
      // A question about one media buy has no pages.
      const isSnapshot = args['pagination'] !== undefined;
      figures[isSnapshot ? 'snapshots' : 'questions'] += 1;
      const life = lives.find(({ buy }) => agentOf(buy) === agentUrl);
      // Until a seller has declared something, it is asked; who asks it that may die at it, and asks again in an hour.
      const isDeclared = now > since + HOUR;
      if (isSnapshot && life && isDeclared && !isAsked(life.seller))
        say(`${iso(now)} ${agentUrl}: is asked for impairments, and tells of none`);
      const name = `${isSnapshot ? 'snapshot' : 'question'} ${agentUrl} ${account} ${Math.floor(now / DAY)}${isSnapshot ? '' : ids[0]}`;
      calls.set(name, (calls.get(name) ?? 0) + 1);
    },
    disturbed: (span, how) => {
      disturbances.push({ span, how });
    },
    rebuilt: (ids, now) => {
      const before = gone;
      gone = (life) => before(life) || !ids.has(life);
      since = now;
      throws.clear();
      for (const { finals: all } of lives) for (const { key } of all) accepted.delete(key);
      for (const of of known.values()) {
        of.kept = undefined;
        of.pulled.clear();
      }
    },
    discovered: (own, { mediaBuys, tasks, isWhole }, now) => {
      const [first] = own;
      if (!first) return;
      const { seller, buy } = first;
      const name = `${iso(now)} ${nameOf(agentOf(buy), buy.account ?? '')}`;
      if (!isWhole) say(`${name}: not all of it was discovered`);
      const ids = new Set(mediaBuys.map(({ mediaBuyId }) => mediaBuyId));
      for (const life of own) {
        const isThere = ids.delete(life.buy.id);
        // Some of its answers lack what runs, or are of a time at which it ran.
        const mayLack = seller.isPatchy ?? false;
        const mayHave = seller.ageMs > 0 && !isEnded(life, now - seller.ageMs);
        if (isThere ? isEnded(life, now) && !mayHave : !isEnded(life, now) && !mayLack) {
          say(`${name}: ${life.buy.id} was ${isThere ? '' : 'not '}discovered`);
        }
      }
      for (const id of ids) say(`${name}: ${id} was discovered, and is none`);
      const url = seller.edition === '3.0' ? undefined : true;
      if (mediaBuys.some(({ usesOurUrl }) => usesOurUrl !== url)) say(`${name}: it is not known who is told`);
      const open = buy.account === undefined ? [openTaskOf(seller)] : [];
      if (tasks.join(' ') !== open.join(' ')) say(`${name}: tasks ${tasks.join(' ')} were discovered`);
    },
    keep: (found) => found.forEach(say),
    compare: (accounts, now) => {
      const found: string[] = [];
      const say = sayingTo(found);
      const streams = new Map(
        accounts.flatMap((page) => page.streams.map((one) => [nameOf(one.agentUrl, one.mediaBuyId), one])),
      );
      for (const [name, life] of byBuy) {
        if (gone(life)) continue;
        judgeStates(life, now, say);
        const stream = streams.get(name);
        if (!stream) {
          say(`${iso(now)} ${name}: no account`);
          continue;
        }
        judgeFinal(life, stream, now, say);
        judgeEnd(life, stream, now, say);
      }
      judgeBudget(now, say);
      return found;
    },
    atEnd: (now) => {
      for (const of of known.values()) judgeAlarms(of, now);
      for (const [name, count] of calls) {
        if (name.startsWith('question') && count > MOST_QUESTIONS)
          say(`${name}: asked ${count} times in a day`);
      }
    },
    figures: () => ({
      ...figures,
      impairments: known.size,
      missedAlarms: [...known.values()].reduce((sum, one) => sum + one.alarms.length, 0),
      finals: {
        received: lives.filter(({ finals: all }) => all.some(({ key }) => accepted.has(key))).length,
        absent: [...alarms.keys()].filter((name) => name.startsWith('final_absent')).length,
      },
      differences: [...alarms.keys()].filter((name) => name.startsWith('totals_differ')).length,
    }),
  };

  /** An alarm for each loss that a snapshot shows, and none where every webhook came in its time. */
  const judgeAlarms = ({ life, impairment, alarms: told }: Known, now: number): void => {
    const { id, steps } = impairment;
    if (told.length > 0 && !promises(life.seller))
      say(`${id}: said to be missed, and its seller promises no webhook`);
    if (!promises(life.seller)) return;
    const isHonest = life.seller.ageMs < HOUR || life.seller.saysAge;
    if (isHonest && told.length > steps.length) say(`${id}: said to be missed ${told.length} times`);
    const own = impairment.fires.filter(({ isAgain }) => !isAgain);
    const firsts = own.map((_fire, at) => steps[(own[at - 1]?.step ?? -1) + 1]?.at ?? 0);
    const inTime = own.every(
      ({ key }, at) => (accepted.get(key) ?? Infinity) <= (firsts[at] ?? 0) + ON_ITS_WAY,
    );
    // What was told to a store that is lost, and webhooks that name an operation of it alone.
    const isOfOldStore = since > begin && (steps.some(({ at }) => at <= since) || !isNamed(impairment));
    if (inTime && isHonest && !isOfOldStore && told.length > 0) {
      say(`${id}: every webhook came in time, and it was said to be missed at ${told.map(iso).join(', ')}`);
    }
    if (told.length > 0 || !isHonest || isOfOldStore || gone(life)) return;
    const lag = lagOf(life);
    for (const { key, step } of own) {
      const is = steps[step];
      const next = Math.min(steps[step + 1]?.at ?? Infinity, life.end.at);
      const before = steps[step - 1];
      if (
        !is ||
        accepted.has(key) ||
        is.at + lag > Math.min(next, now) ||
        !isCalm(is.at, is.at + lag, 'kill')
      )
        continue;
      const isToldAgain = impairment.fires.some(
        (one) => one.isAgain && (accepted.get(one.key) ?? Infinity) < is.at + lag,
      );
      // An end is missed where a snapshot has shown what ended.
      const wasShown =
        is.to !== undefined ||
        (before?.to !== undefined && before.at + lag < is.at && isCalm(before.at, is.at));
      if (wasShown && !isToldAgain)
        say(`${id}: what became of it at ${iso(is.at)} was lost, and nobody was told`);
    }
  };
  return truth;
}

/** About one media buy: each time that something has changed, and each day. */
const MOST_QUESTIONS = 40;
