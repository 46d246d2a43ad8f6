import type { DeliveryReportEvent } from '../../../src/events/index.ts';
import type { Alarm } from '../../../src/index.ts';
import type { Account } from '../../../src/reconcile/index.ts';
import { agentOf, type Buy, GRACE, isOwed, type Report, type Window } from './plan.ts';

/*
 * What is true of each window, by what was sent, what reached the receiver, and what its handlers did: the account of the buyer is
 * compared with it.
 */

const MINUTE = 60_000;
const DAY = 24 * 60 * MINUTE;
/** A change of the buy is noticed within a day, if nothing else tells of it. */
const NOTICED = DAY + 30 * MINUTE;

interface State {
  readonly buy: Buy;
  readonly window: Window;
  /** Keys of its events that the store has taken, with when. */
  readonly stored: Map<string, number>;
  readonly pulled: { key: string; at: number }[];
  /** Events that are no revisions, by what they said. */
  readonly said: { key: string; repeated: boolean; isFirst: boolean }[];
  /** The seller said that its data come later, and the receiver has it. */
  later: number;
  isDone: boolean;
  hasRevision: boolean;
  doneAt: number;
}

export interface Truth {
  readonly wrong: string[];
  /** Events of which it is not known whether the receiver has them: told by a call. */
  readonly unsure: ReadonlyMap<string, (isStored: boolean) => void>;
  /** The sender of an event. */
  readonly agentOf: (key: string) => string;
  readonly isSent: (buy: Buy, window: Window) => boolean;
  readonly added: (report: Report) => void;
  readonly asked: (buy: Buy, now: number) => void;
  readonly delivered: (
    buy: Buy,
    window: Window,
    report: Report,
    of: { readonly isStored: boolean | undefined; readonly code: string },
  ) => void;
  /** The buyer's handler. @throws Error by the plan. */
  readonly handle: (event: DeliveryReportEvent, now: number) => void;
  readonly died: (key: string) => void;
  readonly alarmed: (alarm: Alarm) => void;
  readonly compare: (accounts: readonly Account[], now: number) => void;
  readonly atEnd: () => void;
  readonly figures: () => Figures;
  /** The last window of a buy that came, by its start. */
  readonly lastCame: (mediaBuyId: string) => number;
}

interface Figures {
  readonly windows: number;
  readonly byWebhook: number;
  readonly byPull: number;
  readonly repeated: number;
}

const iso = (ms: number): string => new Date(ms).toISOString();

/** @param prompt after the time at which a window is missing it is pulled so soon. Ms. */
export function createTruth(buys: readonly Buy[], prompt: number = 15 * MINUTE): Truth {
  const states = new Map<string, State>();
  const byBuy = new Map<string, readonly State[]>();
  const reports = new Map<string, { readonly state: State; readonly report: Report }>();
  const throws = new Map<string, number>();
  const dead = new Set<string>();
  const wrong: string[] = [];
  const unsure = new Map<string, (isStored: boolean) => void>();
  const alarms = new Map<string, number>();
  let repeated = 0;
  for (const buy of buys) {
    const own = buy.windows.map((window): State => {
      const state: State = {
        buy,
        window,
        stored: new Map(),
        pulled: [],
        said: [],
        later: 0,
        isDone: false,
        hasRevision: false,
        doneAt: Infinity,
      };
      states.set(`${buy.id} ${iso(window.start)}`, state);
      for (const report of window.reports) reports.set(report.key, { state, report });
      return state;
    });
    byBuy.set(buy.id, own);
  }
  const say = (what: string): void => {
    if (wrong.length < 40) wrong.push(what);
  };
  const nameOf = ({ buy, window }: State): string =>
    `${buy.id} (${buy.kind}, ${buy.zone}) window ${window.index} from ${iso(window.start)}`;
  const dueOf = ({ buy, window, later }: State): number => Math.max(window.end + buy.delayMs, later) + GRACE;
  const isMissing = (state: State, now: number): boolean =>
    isOwed(state.buy, state.window) &&
    dueOf(state) <= now &&
    state.stored.size === 0 &&
    state.pulled.length === 0;
  /** The buyer can't know yet that the buy is active again. */
  const isUnknown = ({ buy, window }: State, now: number): boolean =>
    buy.changes.some(
      ({ at, status }) =>
        status === 'active' && window.end >= at && now - NOTICED < Math.max(at, 0) && at <= now,
    );
  /** What came and is not safe is made safe when its window is due; what came later, at the next look. */
  const safeBy = (state: State): number => {
    const last = Math.max(-Infinity, ...state.stored.values());
    const lookMs = state.buy.frequency === 'hourly' ? 60 * MINUTE : DAY;
    return prompt + (last <= dueOf(state) ? dueOf(state) : last + lookMs);
  };
  const isPullable = ({ buy }: State): boolean => buy.frequency !== 'hourly' || buy.isWindowed;
  const isAway = ({ outage }: Buy, at: number): boolean =>
    outage !== undefined && outage.start - prompt <= at && at < outage.end + DAY;

  const truth: Truth = {
    wrong,
    unsure,
    agentOf: (key) => agentOf(reports.get(key)?.state.buy.kind ?? 'honest'),
    isSent: (buy, window) => isOwed(buy, window),
    added: (report) => {
      const known = reports.get(report.key.slice(0, -2));
      if (known) reports.set(report.key, { state: known.state, report });
    },
    asked: (buy, now) => {
      const missing = (byBuy.get(buy.id) ?? []).filter((state) => isMissing(state, now));
      if (missing.length === 0) say(`${iso(now)} ${buy.id}: asked for delivery where nothing is missing`);
    },
    delivered: (buy, window, report, { isStored, code }) => {
      const state = states.get(`${buy.id} ${iso(window.start)}`);
      if (!state) return;
      unsure.delete(report.key);
      if (isStored === undefined) {
        unsure.set(report.key, (is) => truth.delivered(buy, window, report, { isStored: is, code: 'gone' }));
        return;
      }
      if (!isStored) {
        if (code === 'gone') return;
        say(`${iso(Date.now())} ${report.key}: ${code}`);
        return;
      }
      if (report.expected !== undefined) state.later = Math.max(state.later, report.expected);
      else if (!state.stored.has(report.key)) state.stored.set(report.key, Date.now());
      if (report.next !== undefined) {
        const following = (byBuy.get(buy.id) ?? [])[window.index + 1];
        if (following) following.later = Math.max(following.later, report.next);
      }
    },
    handle: (event, now) => {
      const { idempotencyKey: key, source, report, windows } = event;
      const id = report.media_buy_deliveries?.[0]?.media_buy_id ?? '';
      const isPull = source === 'pull';
      const period = report.reporting_period;
      const known = isPull ? states.get(`${id} ${period?.start ?? ''}`) : reports.get(key)?.state;
      if (!known) {
        say(`${iso(now)} handled: an event of no window ${id} ${period?.start ?? ''}`);
        return;
      }
      const sent = reports.get(key);
      const isFirst = !throws.has(key);
      const left = throws.get(key) ?? (isPull ? known.window.pullThrows : (sent?.report.throws ?? 0));
      throws.set(key, left - 1);
      const isLate = sent?.report.expected !== undefined;
      const isRevision = sent !== undefined && ['adjusted', 'window_update'].includes(sent.report.type);
      const [told] = windows ?? [];
      if (!isLate && told === undefined) say(`${nameOf(known)}: ${key} has no window`);
      if (told && (told.start !== iso(known.window.start) || told.end !== iso(known.window.end))) {
        say(`${nameOf(known)}: ${key} says it is of ${told.start} to ${told.end}`);
      }
      if (isFirst && isPull) {
        if (known.pulled.length > 0) say(`${nameOf(known)}: pulled twice`);
        if (known.stored.size > 0) say(`${nameOf(known)}: pulled though it came`);
        known.pulled.push({ key, at: now });
        if (now < dueOf(known)) say(`${nameOf(known)}: pulled at ${iso(now)}, before it was due`);
      }
      if (isFirst && !isLate && told) {
        if (told.repeated) repeated += 1;
        if (isRevision) known.hasRevision = true;
        else known.said.push({ key, repeated: told.repeated, isFirst: known.said.length === 0 });
      }
      if (left > 0) throw new Error('by the plan');
      if (!isLate && !known.isDone) {
        known.isDone = true;
        known.doneAt = now;
      }
    },
    died: (key) => {
      dead.add(key);
    },
    alarmed: (alarm) => {
      alarms.set(alarm.code, (alarms.get(alarm.code) ?? 0) + 1);
    },
    compare: (accounts, now) => {
      const said = new Map(accounts.flatMap(({ streams }) => streams.map((one) => [one.mediaBuyId, one])));
      for (const buy of buys) {
        const own = byBuy.get(buy.id) ?? [];
        const stream = said.get(buy.id);
        if (!stream || stream.agentUrl !== agentOf(buy.kind)) {
          say(`${iso(now)} ${buy.id}: no account`);
          continue;
        }
        const missing = new Set(stream.missing.map(({ start }) => start));
        const held = new Set(stream.held.map(({ start, key }) => `${start} ${key}`));
        let due = 0;
        for (const state of own) {
          const start = iso(state.window.start);
          const is = isMissing(state, now);
          if (!isUnknown(state, now) && is !== missing.has(start)) {
            say(
              `${iso(now)} ${nameOf(state)}: ${is ? 'missing, and not said' : 'said to be missing, and is not'}`,
            );
          }
          missing.delete(start);
          for (const key of [...state.stored.keys(), ...state.pulled.map((one) => one.key)]) {
            const isHeld = held.delete(`${start} ${key}`);
            if (isHeld !== dead.has(key)) {
              say(
                `${iso(now)} ${nameOf(state)}: ${key} is ${isHeld ? 'said to be held, and is not' : 'held, and not said'}`,
              );
            }
          }
          if (!isOwed(buy, state.window) || dueOf(state) > now) continue;
          due += 1;
          const isHeldHere = [...state.stored.keys(), ...state.pulled.map((one) => one.key)].some((key) =>
            dead.has(key),
          );
          if (!is && !state.isDone && !isHeldHere && safeBy(state) < now) {
            say(`${iso(now)} ${nameOf(state)}: came, is due, and was not handled`);
          }
          if (
            is &&
            isPullable(state) &&
            dueOf(state) + prompt < now &&
            !isAway(buy, now) &&
            state.window.dataAt + DAY < now &&
            !isUnknown(state, now)
          ) {
            say(`${iso(now)} ${nameOf(state)}: is missing, and was not pulled`);
          }
        }
        for (const start of missing)
          say(`${iso(now)} ${buy.id}: ${start} is said to be missing, and is no window`);
        for (const one of held) say(`${iso(now)} ${buy.id}: ${one} is said to be held, and is no event`);
        const isOpen = own.some((state) => isUnknown(state, now));
        if (!isOpen && stream.windows.due !== due)
          say(`${iso(now)} ${buy.id}: ${stream.windows.due} due, ${due} are`);
        const isBad = stream.missing.length > 0 || stream.held.length > 0;
        const isComplete = accounts.every(({ complete }) => complete);
        if (isBad && isComplete) say(`${iso(now)} ${buy.id}: complete, and is not`);
      }
    },
    atEnd: () => {
      for (const state of states.values()) {
        const firsts = state.said.filter((one) => !one.repeated).length;
        const wanted = state.hasRevision || state.said.length === 0 ? [0, 1] : [1];
        if (!wanted.includes(firsts)) {
          say(
            `${nameOf(state)}: ${firsts} of ${state.said.length} events are first ones: ${JSON.stringify(state.said)}`,
          );
        }
        for (const { at } of state.pulled) {
          const { buy, window } = state;
          const isLate = at > Math.max(dueOf(state), window.dataAt) + prompt;
          const wasAway = isAway(buy, dueOf(state));
          const wasUnknown = buy.changes.some(
            (one) => one.status === 'active' && Math.abs(window.end - one.at) < 2 * NOTICED,
          );
          // Asked for in vain before: the next try is up to a day later.
          const wasInVain = window.dataAt > dueOf(state);
          if (isLate && !wasAway && !wasUnknown && !wasInVain)
            say(`${nameOf(state)}: pulled at ${iso(at)}, due ${iso(dueOf(state))}`);
        }
      }
    },
    figures: () => {
      const all = [...states.values()].filter(({ buy, window }) => isOwed(buy, window));
      return {
        windows: all.length,
        byWebhook: all.filter(({ stored, pulled }) => stored.size > 0 && pulled.length === 0).length,
        byPull: all.filter(({ pulled }) => pulled.length > 0).length,
        repeated,
      };
    },
    lastCame: (mediaBuyId) =>
      Math.max(
        -Infinity,
        ...(byBuy.get(mediaBuyId) ?? []).filter(({ isDone }) => isDone).map(({ window }) => window.start),
      ),
  };
  return truth;
}
