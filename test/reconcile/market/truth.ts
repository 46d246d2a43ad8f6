import type { DeliveryReportEvent, Event } from '../../../src/events/index.ts';
import type { Alarm } from '../../../src/index.ts';
import type { Account } from '../../../src/reconcile/index.ts';
import { agentOf, type Buy, GRACE, isOwed, type Report, type Row, type Window } from './plan.ts';
import type { Span } from './zones.ts';

/*
 * What is true of each window, by what was sent, what reached the receiver, and what its handlers did: the account of the buyer is
 * compared with it.
 */

const MINUTE = 60_000;
const DAY = 24 * 60 * MINUTE;
/** A change of the buy is noticed within a day, if nothing else tells of it. */
const NOTICED = DAY + 30 * MINUTE;

interface Pulled {
  readonly key: string;
  /** When the seller was asked for it. */
  readonly askedAt: number;
  /** It is this window, and not one by another clock that has the same date. */
  readonly isExact: boolean;
}

interface State {
  readonly buy: Buy;
  readonly window: Window;
  /** Keys of its events that the store has taken, with when. */
  readonly stored: Map<string, number>;
  readonly pulled: Pulled[];
  /** When the seller was last asked for it while it was missing. */
  askedAt: number;
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
  /** Of a report those that are sent: a seller reports what is owed. */
  readonly rowsOf: (report: Report) => readonly Row[];
  readonly added: (report: Report) => void;
  readonly asked: (buy: Buy, now: number) => void;
  readonly delivered: (
    report: Report,
    of: { readonly isStored: boolean | undefined; readonly code: string },
  ) => void;
  /** The buyer's handler. @throws Error by the plan. */
  readonly handle: (event: Event, now: number) => void;
  readonly died: (key: string) => void;
  /** Events whose handler came to its end, by key. */
  readonly handled: ReadonlyMap<string, Handled>;
  /** The buyer has lost its store; of these media buys it knows again, and their windows are owed anew. */
  readonly rebuilt: (mediaBuyIds: ReadonlySet<string>, now: number) => void;
  readonly alarmed: (alarm: Alarm) => void;
  /** What is wrong with an account. It is not kept: what is under way may be the reason, and is compared again. */
  readonly compare: (accounts: readonly Account[], now: number) => readonly string[];
  /** Keeps what the last comparison has found. */
  readonly keep: (found: readonly string[]) => void;
  readonly atEnd: () => void;
  /** Whether what was told is what there was to tell. */
  readonly alarmsAtEnd: (now: number) => void;
  readonly figures: () => Figures;
  /** The last window of a buy that came, by its start. */
  readonly lastCame: (mediaBuyId: string) => number;
}

interface Handled {
  readonly sender: string;
  /** Its handler came to its end then, the last time. */
  readonly at: number;
}

/** A report, and the windows of its rows. */
interface Sent {
  readonly report: Report;
  /** Its sender. */
  readonly agent: string;
  readonly rows: readonly { readonly state: State; readonly row: Row }[];
}

interface Figures {
  readonly windows: number;
  readonly byWebhook: number;
  readonly byPull: number;
  readonly repeated: number;
}

const iso = (ms: number): string => new Date(ms).toISOString();

/** Says what is wrong. */
export type Say = (what: string) => void;

/** Adds to a list what is said, and no more than can be read. */
export function sayingTo(list: string[]): Say {
  return (what) => {
    if (list.length < 40) list.push(what);
  };
}

/** An hour and a day may begin together. */
const nameOfWindow = (mediaBuyId: string, { start, end }: Span): string =>
  `${mediaBuyId} ${iso(start)} ${iso(end)}`;

const spanIn = ({ start, end }: Readonly<Record<keyof Span, string>>): Span => ({
  start: Date.parse(start),
  end: Date.parse(end),
});

/** @param prompt after the time at which a window is missing it is pulled so soon. Ms. */
export function createTruth(buys: readonly Buy[], prompt: number = 15 * MINUTE): Truth {
  const states = new Map<string, State>();
  const byBuy = new Map<string, readonly State[]>();
  const reports = new Map<string, Sent>();
  /** Sellers whose clock has shown itself. */
  const learned = new Set<string>();
  const throws = new Map<string, number>();
  const dead = new Set<string>();
  const handled = new Map<string, Handled>();
  /** Media buys of which the buyer knows nothing any more. */
  const gone = new Set<string>();
  let rebuiltAt = -Infinity;
  const wrong: string[] = [];
  const unsure = new Map<string, (isStored: boolean) => void>();
  const alarms: Alarm[] = [];
  let repeated = 0;
  for (const buy of buys) {
    const own = buy.windows.map((window): State => {
      const state: State = {
        buy,
        window,
        stored: new Map(),
        pulled: [],
        askedAt: -Infinity,
        said: [],
        later: 0,
        isDone: false,
        hasRevision: false,
        doneAt: Infinity,
      };
      states.set(nameOfWindow(buy.id, window), state);
      return state;
    });
    byBuy.set(buy.id, own);
  }
  for (const buy of buys) {
    for (const window of buy.windows) {
      for (const report of window.reports) {
        const rows = report.rows.flatMap((row) => {
          const state = states.get(nameOfWindow(row.id, window));
          return state && isOwed(state.buy, state.window) ? [{ state, row }] : [];
        });
        reports.set(report.key, { report, agent: agentOf(buy), rows });
      }
    }
  }
  /** Until then the buyer counts days that are no days of its seller. */
  const isUnclear = ({ id, declared }: Buy): boolean => declared !== undefined && !learned.has(id);
  const after = ({ buy, window }: State): State | undefined =>
    byBuy.get(buy.id)?.find((one) => one.window.start >= window.end);
  const learn = ({ id, declared }: Buy): void => {
    const own = declared === undefined ? [] : (byBuy.get(id) ?? []);
    const running = own.some(({ stored }, at) => stored.size > 0 && (own[at + 1]?.stored.size ?? 0) > 0);
    if (running) learned.add(id);
  };
  const say = sayingTo(wrong);
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
    const lookMs = state.window.frequency === 'hourly' ? 60 * MINUTE : DAY;
    return prompt + (last <= dueOf(state) ? dueOf(state) : last + lookMs);
  };
  const isPullable = ({ buy, window }: State): boolean =>
    buy.lifetimeOnly === undefined && (window.frequency !== 'hourly' || buy.isWindowed);
  const isAway = ({ outage }: Buy, at: number): boolean =>
    outage !== undefined && outage.start - prompt <= at && at < outage.end + DAY;

  /** Before the clock is known the buyer pulls days by the one that was declared. */
  const pulledOf = (id: string, { start, end }: Span): State | undefined =>
    byBuy.get(id)?.find(({ buy, window }) => {
      if (buy.declared === undefined) return window.start === start && window.end === end;
      return window.start <= start && start < window.end;
    });
  const pulledNow = (
    state: State,
    { key, at, isExact }: { readonly key: string; readonly at: number; readonly isExact: boolean },
  ): void => {
    if (isExact && state.pulled.length > 0) say(`${nameOf(state)}: pulled twice`);
    // What the seller was asked for while it was missing may come before the handler of the pulled event runs.
    const wasAsked = state.askedAt > -Infinity;
    if (isExact && state.stored.size > 0 && !wasAsked) say(`${nameOf(state)}: pulled though it came`);
    if (isExact && at < dueOf(state)) say(`${nameOf(state)}: pulled at ${iso(at)}, before it was due`);
    state.pulled.push({ key, askedAt: state.askedAt, isExact });
  };
  /** An event is handled: what it says of a window. @param report absent where it was pulled. */
  const told = (
    state: State,
    event: DeliveryReportEvent,
    { report, isFirst }: { readonly report: Report | undefined; readonly isFirst: boolean },
  ): void => {
    const { buy, window } = state;
    const { idempotencyKey: key, windows = [] } = event;
    if (gone.has(buy.id)) return;
    const own = windows.filter(({ mediaBuyId }) => mediaBuyId === buy.id);
    const [is] = own;
    if (isUnclear(buy)) return;
    // The seller has not said yet what it has.
    if (!is && Date.now() < rebuiltAt + prompt) return;
    if (!is || own.length > 1) say(`${nameOf(state)}: ${key} has ${own.length} windows of it`);
    if (!is) return;
    if (is.start !== iso(window.start) || is.end !== iso(window.end)) {
      say(`${nameOf(state)}: ${key} says it is of ${is.start} to ${is.end}`);
    }
    if (!isFirst) return;
    // A pulled report whose window has come by then is a duplicate, and no event.
    if (is.repeated && !report) say(`${nameOf(state)}: pulled event ${key} is a repeated one`);
    if (is.repeated) repeated += 1;
    if (report?.type === 'adjusted' || report?.type === 'window_update') state.hasRevision = true;
    else state.said.push({ key, repeated: is.repeated, isFirst: state.said.length === 0 });
  };

  const handle = (event: Event, now: number): void => {
    if (event.kind !== 'delivery-report') return;
    const { idempotencyKey: key, source, report } = event;
    const id = report.media_buy_deliveries?.[0]?.media_buy_id ?? '';
    const { start = '', end = '' } = report.reporting_period ?? {};
    const period = spanIn({ start, end });
    const pulled = source === 'pull' ? pulledOf(id, period) : undefined;
    const sent = source === 'pull' ? undefined : reports.get(key);
    if (!pulled && !sent) {
      say(`${iso(now)} handled: an event of no window ${id} ${start}`);
      return;
    }
    const isFirst = !throws.has(key);
    const left = throws.get(key) ?? pulled?.window.pullThrows ?? sent?.report.throws ?? 0;
    throws.set(key, left - 1);
    if (pulled && isFirst) pulledNow(pulled, { key, at: now, isExact: pulled.window.start === period.start });
    const withData = sent?.rows.flatMap(({ state, row }) => (row.expected === undefined ? [state] : []));
    const came = pulled ? [pulled] : (withData ?? []);
    for (const state of came) told(state, event, { report: sent?.report, isFirst });
    if (left > 0) throw new Error('by the plan');
    for (const state of came.filter(({ isDone }) => !isDone)) {
      state.isDone = true;
      state.doneAt = now;
    }
  };

  const truth: Truth = {
    wrong,
    unsure,
    handled,
    agentOf: (key) => reports.get(key)?.agent ?? '',
    rowsOf: ({ key }) => (reports.get(key)?.rows ?? []).map(({ row }) => row),
    added: (report) => {
      const known = reports.get(report.key.slice(0, -2));
      if (known) reports.set(report.key, { ...known, report });
    },
    asked: (buy, now) => {
      const missing = (byBuy.get(buy.id) ?? []).filter((state) => isMissing(state, now));
      for (const state of missing) state.askedAt = now;
      if (isUnclear(buy)) return;
      if (buy.lifetimeOnly === 'declared') say(`${iso(now)} ${buy.id}: asked for what nobody can answer`);
      if (missing.length === 0) say(`${iso(now)} ${buy.id}: asked for delivery where nothing is missing`);
    },
    delivered: (report, { isStored, code }) => {
      const { key, next } = report;
      if (isStored === undefined) {
        // What a handler was given was stored, also where its record is not kept any more.
        unsure.set(key, (is) => {
          unsure.delete(key);
          truth.delivered(report, { isStored: is || throws.has(key), code: 'gone' });
        });
        return;
      }
      // A later try that reached nobody says nothing of those before it.
      if (!isStored) {
        if (code !== 'gone') say(`${iso(Date.now())} ${key}: ${code}`);
        return;
      }
      unsure.delete(key);
      for (const { state, row } of reports.get(key)?.rows ?? []) {
        if (row.expected !== undefined) state.later = Math.max(state.later, row.expected);
        else if (!state.stored.has(key)) state.stored.set(key, Date.now());
        const following = after(state);
        if (next !== undefined && following) following.later = Math.max(following.later, next);
        learn(state.buy);
      }
    },
    handle: (event, now) => {
      handle(event, now);
      handled.set(event.idempotencyKey, { sender: event.sender, at: now });
    },
    died: (key) => {
      dead.add(key);
    },
    rebuilt: (ids, now) => {
      rebuiltAt = now;
      for (const { id } of buys) if (!ids.has(id)) gone.add(id);
      for (const state of states.values()) {
        state.stored.clear();
        state.pulled.length = 0;
        state.askedAt = -Infinity;
        state.said.length = 0;
        state.later = 0;
        state.isDone = false;
      }
      throws.clear();
      dead.clear();
      unsure.clear();
    },
    alarmed: (alarm) => {
      alarms.push(alarm);
    },
    keep: (found) => found.forEach(say),
    compare: (accounts, now) => {
      const found: string[] = [];
      const say = sayingTo(found);
      const said = new Map(accounts.flatMap(({ streams }) => streams.map((one) => [one.mediaBuyId, one])));
      for (const buy of buys) {
        if (gone.has(buy.id)) continue;
        const own = byBuy.get(buy.id) ?? [];
        const stream = said.get(buy.id);
        if (!stream || stream.agentUrl !== agentOf(buy)) {
          say(`${iso(now)} ${buy.id}: no account`);
          continue;
        }
        if (isUnclear(buy)) continue;
        if (!buy.isSilent && stream.zone.value !== buy.zone)
          say(`${iso(now)} ${buy.id}: its clock is ${stream.zone.value}`);
        const missing = new Map(stream.missing.map((one) => [nameOfWindow(buy.id, spanIn(one)), one]));
        const held = new Set(stream.held.map((one) => `${nameOfWindow(buy.id, spanIn(one))} ${one.key}`));
        let due = 0;
        for (const state of own) {
          const start = nameOfWindow(buy.id, state.window);
          const is = isMissing(state, now);
          if (!isUnknown(state, now) && is !== missing.has(start)) {
            say(
              `${iso(now)} ${nameOf(state)}: ${is ? 'missing, and not said' : 'said to be missing, and is not'}`,
            );
          }
          const recoverable = missing.get(start)?.recoverable;
          // What only its seller's answer can say is known by then.
          const isKnown = buy.lifetimeOnly !== 'refused' || dueOf(state) + prompt < now;
          if (recoverable !== undefined && isKnown && recoverable !== isPullable(state)) {
            say(`${iso(now)} ${nameOf(state)}: is said to be ${recoverable ? '' : 'un'}recoverable`);
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
        for (const start of missing.keys())
          say(`${iso(now)} ${start} is said to be missing, and is no window`);
        for (const one of held) say(`${iso(now)} ${one} is said to be held, and is no event`);
        const isOpen = own.some((state) => isUnknown(state, now));
        if (!isOpen && stream.windows.due !== due)
          say(`${iso(now)} ${buy.id}: ${stream.windows.due} due, ${due} are`);
        const isBad = stream.missing.length > 0 || stream.held.length > 0;
        const isComplete = accounts.every(({ complete }) => complete);
        if (isBad && isComplete) say(`${iso(now)} ${buy.id}: complete, and is not`);
      }
      return found;
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
        for (const { askedAt: at } of state.pulled.filter(({ isExact }) => isExact)) {
          const { buy, window } = state;
          const isLate = at > Math.max(dueOf(state), window.dataAt, rebuiltAt) + prompt;
          const wasAway = isAway(buy, dueOf(state));
          const wasUnknown = buy.changes.some(
            (one) => one.status === 'active' && Math.abs(window.end - one.at) < 2 * NOTICED,
          );
          // Asked for in vain before: the next try is up to a day later.
          const wasInVain = window.dataAt > dueOf(state);
          if (isLate && !wasAway && !wasUnknown && !wasInVain)
            say(`${nameOf(state)}: asked for at ${iso(at)}, due ${iso(dueOf(state))}`);
        }
      }
    },
    alarmsAtEnd: (now) => {
      const count = (state: State): number => {
        const { start, end } = state.window;
        const covers = ({ mediaBuyId, ...of }: Alarm): boolean =>
          mediaBuyId === state.buy.id &&
          Date.parse(String(of['start'])) <= start &&
          end <= Date.parse(String(of['end']));
        return alarms.filter((alarm) => alarm.code === 'report_unrecoverable' && covers(alarm)).length;
      };
      for (const state of states.values()) {
        const isLost = !isPullable(state) && isMissing(state, now) && dueOf(state) + DAY < now;
        const most = isPullable(state) ? 0 : 1;
        if (count(state) < (isLost ? 1 : 0) || count(state) > most) {
          say(`${nameOf(state)}: said ${count(state)} times to be unrecoverable`);
        }
      }
      for (const { id, declared } of buys) {
        const clocks = alarms.filter(({ code, mediaBuyId }) => code === 'misconfigured' && mediaBuyId === id);
        if (clocks.length !== (declared === undefined ? 0 : 1)) {
          say(`${id}: ${clocks.length} alarms about its clock`);
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
