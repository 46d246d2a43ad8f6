import type { Queue as Queue6 } from 'bullmq';
import type { Queue as Queue5 } from 'bullmq5';
import type { PgBoss } from 'pg-boss';
import type PgBoss10 from 'pg-boss10';
import { describe, expectTypeOf, it } from 'vitest';
import type { HandlerContext, ReceiverOptions } from '../../src/index.ts';
import type { DeliveryReportEvent, Event } from '../../src/events/index.ts';
import { enqueue as toBull } from '../../src/queues/bullmq.ts';
import { enqueue as toBoss } from '../../src/queues/pg-boss.ts';
import type { PgClient } from '../../src/stores/postgres.ts';

interface Report {
  readonly spend: number;
}
type Schemas = { readonly create_media_buy: never };
type Options = ReceiverOptions<Schemas, PgClient>;

/** Never called: what compiles is the test. */
function bull(six: Queue6, five: Queue5, own: Queue6<Report, void, 'report'>): Options['handlers'] {
  // @ts-expect-error the default data is the event, and this queue takes reports
  toBull(own);
  // @ts-expect-error the id is the delivery's
  toBull(six, { jobOptions: { jobId: 'mine' } });
  // @ts-expect-error no such option
  toBull(six, { jobOptions: { attemps: 3 } });
  return {
    completed: toBull(six, { jobOptions: { attempts: 3, backoff: { type: 'exponential', delay: 1000 } } }),
    failed: toBull(five, { jobOptions: { attempts: 3 }, rememberMs: 86_400_000 }),
    deliveryReport: toBull(own, {
      jobName: 'report',
      data: (event: DeliveryReportEvent) => ({ spend: event.report.media_buy_deliveries?.length ?? 0 }),
    }),
    other: toBull(six),
  };
}

function boss(twelve: PgBoss, ten: PgBoss10): Options['handlers'] {
  // @ts-expect-error the id is the delivery's
  toBoss(twelve, 'events', { jobOptions: { id: 'mine' } });
  // @ts-expect-error no such option
  toBoss(twelve, 'events', { jobOptions: { retryLimmit: 5 } });
  // @ts-expect-error throttling drops events
  toBoss(ten, 'events', { jobOptions: { singletonSeconds: 60 } });
  return {
    completed: toBoss(twelve, 'events', { transaction: true, jobOptions: { retryLimit: 5 } }),
    failed: toBoss(ten, 'events', { jobOptions: { retryLimit: 5, priority: 1 } }),
    deliveryReport: toBoss(
      twelve,
      (event: DeliveryReportEvent) => `reports-${event.report.notification_type}`,
    ),
    other: toBoss(twelve, ({ kind }) => kind),
  };
}

describe('queues of both major versions fit without a cast', () => {
  it('enqueue() returns a handler of every kind', () => {
    expectTypeOf(bull).returns.toEqualTypeOf<Options['handlers']>();
    expectTypeOf(boss).returns.toEqualTypeOf<Options['handlers']>();
    expectTypeOf(toBull<object>).returns.toEqualTypeOf<
      (event: Event, ctx: HandlerContext) => Promise<void>
    >();
  });
});
