// Runs the scenarios `lost-and-polled` and `report-lost-and-pulled` (dev.md §2.3). Each withholds a webhook until the
// buyer asks for its content. called-seller.ts asks which webhooks are withheld.
import type { Scenario, ScenarioKit } from './contract.ts';
import type { Order } from './media-buys.ts';
import type { DevScheme, Told } from './wire.ts';

type Handled = Extract<Told, { readonly hook: 'handled' }>;

/**
 * The kind of webhook that a scenario withholds: `end` for the completion of an order, `report` for the delivery
 * reports of its media buy.
 */
export type Lost = 'end' | 'report';

/** A running scenario that waits for the buyer. */
interface Watch {
  readonly lost: Lost;
  readonly agentUrl: string;
  /** Resolves with the order that the buyer places; the scenario then withholds a webhook of this order. */
  readonly ordered: PromiseWithResolvers<Order>;
  order: Order | undefined;
  /** Resolves when the buyer asks for the content of the withheld webhook, e.g. polls the task. */
  readonly asked: PromiseWithResolvers<undefined>;
  /** Resolves when a hook of the receiver reports that a handler has run for the content that the buyer fetched. */
  readonly handled: PromiseWithResolvers<Handled>;
}

/** Has the scenarios that wait for the buyer, and says which webhooks they withhold meanwhile. */
export interface LostWebhooks {
  /** True if a scenario waits for the seller's next order, to withhold this kind of webhook. */
  readonly isNext: (lost: Lost, agentUrl: string) => boolean;
  /** Called with each new order, because a scenario may be waiting for it. */
  readonly ordered: (agentUrl: string, order: Order) => void;
  /** True if a scenario withholds this kind of webhook of the order. */
  readonly isLost: (lost: Lost, order: Order) => boolean;
  /**
   * Called when the buyer has asked for the task status (`end`) or for the delivery reports (`report`) of these orders.
   */
  readonly asked: (lost: Lost, orders: readonly Order[]) => void;
  /** Called with each report of the receiver's hooks (`devHooks`), because a scenario may be waiting for it. */
  readonly told: (told: Told) => void;
  readonly scenarios: Readonly<Record<string, Scenario>>;
}

const ALL: readonly DevScheme[] = ['signature', 'hmac', 'bearer'];
const MINUTE_MS = 60_000;
/** The total time that a scenario waits for the buyer to order and then to ask for the withheld content, ms. */
const WAIT_MS = 5 * MINUTE_MS;
/**
 * The time that a scenario waits until a hook of the receiver reports the handler's run, ms. Without a report the
 * scenario passes too.
 */
const TOLD_MS = 30_000;

/** The beginning of the idempotency keys of pulled reports, i.e. reports that the buyer fetched itself. */
const PULLED = 'observation/pull/';

const isOfWatch = ({ lost, agentUrl, order }: Watch, told: Handled): boolean =>
  told.sender === agentUrl &&
  (lost === 'end' ? told.taskId !== undefined && told.taskId === order?.taskId : told.key.startsWith(PULLED));

/**
 * Resolves with the result of `what`.
 * @throws Error (rejects) with the message `late`, if the time `until` (Unix ms) comes first.
 */
async function before<T>(kit: ScenarioKit, until: number, what: Promise<T>, late: string): Promise<T> {
  const over = new AbortController();
  try {
    return await Promise.race([
      what,
      kit.sleep(Math.max(0, until - kit.now()), over.signal).then(() => Promise.reject(new Error(late))),
    ]);
  } finally {
    over.abort();
  }
}

/** The texts that a waiting scenario shows on the page. */
interface Sayings {
  readonly call: (agentUrl: string) => string;
  readonly lost: (order: Order) => string;
  readonly start: string;
}

const SAYINGS: Readonly<Record<Lost, Sayings>> = {
  end: {
    call: (agentUrl) => `Waits for create_media_buy at ${agentUrl}: registrations.create, then call().`,
    lost: ({ taskId }) =>
      `${taskId} was taken as submitted, and its webhook is not sent. Waits until the buyer asks what became of it.`,
    start: 'Start a poller: createPoller({ receiver, registrations }).start(), and receiver.start().',
  },
  report: {
    call: (agentUrl) =>
      `Waits for create_media_buy with a reporting_webhook at ${agentUrl}: registrations.reportingWebhook, create, then call().`,
    lost: ({ mediaBuyId, start, reports }) =>
      `The reports of ${mediaBuyId} since ${new Date(start).toISOString()} are due (${reports?.frequency ?? ''}), and none is sent. Waits until the buyer asks for them.`,
    start:
      'Start a reconciler: createReconciler({ receiver, registrations }).start(), and receiver.start(). It asks for whole days and months alone.',
  },
};

const QUESTION: Readonly<Record<Lost, string>> = { end: 'about the task', report: 'for the reports' };

/** Makes the scenarios that withhold webhooks, for all sellers of one dev. */
export function createLostWebhooks(): LostWebhooks {
  const watches = new Set<Watch>();
  const having = (lost: Lost, order: Order): Watch[] =>
    [...watches].filter((watch) => watch.lost === lost && watch.order === order);

  async function play(kit: ScenarioKit, watch: Watch): Promise<void> {
    const { lost, agentUrl, ordered, asked, handled } = watch;
    const says = SAYINGS[lost];
    const until = kit.now() + WAIT_MS;
    kit.waiting(says.call(agentUrl));
    const order = await before(
      kit,
      until,
      ordered.promise,
      `No such call came in 5 minutes. ${says.call(agentUrl)}`,
    );
    kit.waiting(says.lost(order));
    await before(kit, until, asked.promise, `The buyer did not ask in 5 minutes. ${says.start}`);
    const seconds = Math.round((kit.now() - order.at) / 1000);
    const found = `The buyer asked ${QUESTION[lost]} ${seconds} s after its call.`;
    kit.waiting(`${found} Waits until devHooks() tells what its handler got.`);
    const run = await before(kit, kit.now() + TOLD_MS, handled.promise, '').catch((error: unknown) => {
      if (kit.signal.aborted) throw error;
      return undefined;
    });
    if (!run) return kit.waiting(`${found} No hook told what its handler got.`);
    const end = `Its handler's run ${run.run} ended as ${run.state}${run.error === undefined ? '' : `: ${run.error}`}.`;
    if (run.state !== 'applied') throw new Error(`${found} ${end}`);
    kit.waiting(`${found} ${end}`);
  }

  const scenario = (lost: Lost, says: string): Scenario => ({
    says,
    schemes: ALL,
    run: async (kit) => {
      const watch: Watch = {
        lost,
        agentUrl: kit.seller.agentUrl,
        order: undefined,
        ordered: Promise.withResolvers(),
        asked: Promise.withResolvers(),
        handled: Promise.withResolvers(),
      };
      watches.add(watch);
      try {
        await play(kit, watch);
      } finally {
        watches.delete(watch);
      }
    },
  });

  return {
    isNext: (lost, agentUrl) =>
      [...watches].some((watch) => watch.lost === lost && watch.agentUrl === agentUrl && !watch.order),
    ordered(agentUrl, order) {
      for (const watch of watches) {
        if (watch.agentUrl !== agentUrl || watch.order) continue;
        if (watch.lost === 'report' && !order.reports) continue;
        watch.order = order;
        watch.ordered.resolve(order);
      }
    },
    isLost: (lost, order) => having(lost, order).length > 0,
    asked(lost, orders) {
      for (const order of orders) {
        for (const { asked } of having(lost, order)) asked.resolve(undefined);
      }
    },
    told(told) {
      if (told.hook !== 'handled') return;
      for (const watch of watches) if (isOfWatch(watch, told)) watch.handled.resolve(told);
    },
    scenarios: {
      'lost-and-polled': scenario(
        'end',
        'Loses the webhook of your next call, and waits until you ask about it.',
      ),
      'report-lost-and-pulled': scenario(
        'report',
        'Loses the reports of what you buy next, and waits until you ask for them.',
      ),
    },
  };
}
