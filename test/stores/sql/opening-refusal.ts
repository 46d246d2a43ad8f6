import { expect } from 'vitest';
import { ConfigError, type Store } from '../../../src/index.ts';

/** The message with which `open` refuses the database; undefined where it opens. The store is closed after it. */
export async function openingRefusal(store: Pick<Store, 'open' | 'close'>): Promise<string | undefined> {
  try {
    await store.open();
    return undefined;
  } catch (error) {
    expect(error).toBeInstanceOf(ConfigError);
    return (error as Error).message;
  } finally {
    await store.close();
  }
}
