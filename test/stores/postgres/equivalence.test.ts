import { beforeAll } from 'vitest';
import { expectCountsRight, HANDED_CLOCK, ownSchema } from '../postgres-schemas.ts';
import { describeSameAnswers } from '../sql/memory-comparison.ts';

const at = ownSchema();
beforeAll(() => at.sql(HANDED_CLOCK));

describeSameAnswers('Postgres', { at, clockMs: 0, expectCountsRight: () => expectCountsRight(at) });
