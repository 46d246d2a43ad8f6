import type { Event } from '../../../src/events/index.ts';
import type { Account } from '../../../src/reconcile/index.ts';
import type { CallSeller, JsonObject } from '../../../src/registrations/index.ts';
import type { LiveOptions } from './live.ts';

/* Buyers that are wrong about impairments, ends and totals: the market has to notice each of them. */

type Wrongly = NonNullable<LiveOptions['wrongly']>;

const asks = (change: (call: CallSeller) => CallSeller): Wrongly => ({
  buyer: (options) => ({ ...options, call: Object.assign(change(options.call), options.call) }),
});

/** What a seller answers, changed. */
const answered = (change: (answer: JsonObject) => unknown): Wrongly =>
  asks((call) => async (agentUrl, operation, args, how) => {
    const answer = await call(agentUrl, operation, args, how);
    return operation === 'get_media_buys' ? change(answer as JsonObject) : answer;
  });

type Rows = readonly JsonObject[];

const rowsChanged = (change: (row: JsonObject) => JsonObject): Wrongly =>
  answered((answer) => ({ ...answer, media_buys: (answer['media_buys'] as Rows).map(change) }));

const handled = (
  change: (event: Event, handle: (event: Event) => void | Promise<void>) => Promise<void>,
): Wrongly => ({
  buyer: (options) => ({ ...options, handle: (event) => change(event, options.handle) }),
});

const isTold = (event: Event): boolean => event.kind === 'other' && event.source === 'pull';

/** Ends of impairments are lost on their way to the handlers. */
export const forgetsEnds: Wrongly = handled(async (event, handle) => {
  if (isTold(event) && 'state' in event && event.state?.ended) return;
  await handle(event);
});

/** What a snapshot tells is told by another process too. */
export const tellsTwice: Wrongly = handled(async (event, handle) => {
  await handle(event);
  if (isTold(event)) await handle({ ...event, idempotencyKey: `${event.idempotencyKey}-too` });
});

/** What a snapshot tells is told by another process too, always while the account is compared. */
export function tellsTwiceWhileCompared(): Wrongly {
  let again = async (): Promise<void> => {};
  return {
    ...handled(async (event, handle) => {
      await handle(event);
      if (isTold(event))
        again = async () => handle({ ...event, idempotencyKey: `${event.idempotencyKey}-too` });
    }),
    account: async (real) => {
      await again();
      again = async () => {};
      return real;
    },
  };
}

/** An answer that is hours old is taken for what is. */
export const trustsOldAnswers: Wrongly = rowsChanged(({ status_as_of: _age, ...row }) => row);

/** Impairments of answers are not looked at. */
export const looksAway: Wrongly = rowsChanged(
  ({ health: _health, impairments: _impairments, ...row }) => row,
);

/** A snapshot is read twice. */
export const asksTwice: Wrongly = asks((call) => async (agentUrl, operation, args, how) => {
  if (operation === 'get_media_buys') await call(agentUrl, operation, args, how);
  return call(agentUrl, operation, args, how);
});

/** Everybody is asked, whatever they declare. */
export const asksEverybody: Wrongly = answeredCapabilities();

function answeredCapabilities(): Wrongly {
  return asks((call) => async (agentUrl, operation, args, how) => {
    const answer = await call(agentUrl, operation, args, how);
    return operation === 'get_adcp_capabilities'
      ? { adcp: { major_versions: [3] }, adcp_version: '3.1', media_buy: {} }
      : answer;
  });
}

/** Streams are closed when their media buys are not. */
export const closesEarly: Wrongly = {
  account: (pages) =>
    pages.map((page): Account => ({
      ...page,
      streams: page.streams.map((one) => ({
        ...one,
        closed: true,
        closedAt: new Date(page.asOf).toISOString(),
      })),
    })),
};

/** What comes with a final report is not known to be one. */
export const forgetsFinals: Wrongly = {
  account: (pages) =>
    pages.map((page): Account => ({
      ...page,
      streams: page.streams.map((one) => (one.final === 'received' ? { ...one, final: 'absent' } : one)),
    })),
};

/** Totals differ at the tolerance already. */
export const isStrict: Wrongly = { reconcile: { tolerance: { impressions: 0.019, spend: 0.009 } } };

/** Totals differ where nobody would say so. */
export const isLenient: Wrongly = { reconcile: { tolerance: { impressions: 0.021, spend: 0.011 } } };

/** Each alarm is raised twice. */
export const alarmsTwice: Wrongly = {
  buyer: (options) => ({
    ...options,
    alarmed: (alarm) => {
      options.alarmed(alarm);
      options.alarmed(alarm);
    },
  }),
};

/** What a snapshot shows first is said to be missed. */
export const cannotWait: Wrongly = {
  buyer: (options) => ({
    ...options,
    handle: async (event) => {
      await options.handle(event);
      if (event.kind !== 'other' || !('state' in event) || !event.state) return;
      const { id, mediaBuyId = '' } = event.state;
      options.alarmed({ code: 'impairment_missed', message: '', sender: event.sender, mediaBuyId, id });
    },
  }),
};

/** No alarm is heard. */
export const isDeaf: Wrongly = { buyer: (options) => ({ ...options, alarmed: () => {} }) };
