import { Fault } from '../../errors.ts';

/**
 * Waits for at most so long. What comes later goes to `late`.
 * @param what took longer, and whose, e.g. `Postgres: a statement`.
 * @throws Fault `store_unavailable` after that time.
 */
export async function within<T>(
  running: Promise<T>,
  ms: number,
  what: string,
  late: (value: T) => void = () => undefined,
): Promise<T> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  let isLate = false;
  const over = new Promise<never>((_, reject) => {
    timer = setTimeout(() => {
      isLate = true;
      reject(new Fault('store_unavailable', `${what} took longer than ${ms} ms.`));
    }, ms);
  });
  const passOn = async (): Promise<void> => {
    const value = await running;
    if (isLate) late(value);
  };
  passOn().catch(() => undefined);
  try {
    return await Promise.race([running, over]);
  } finally {
    clearTimeout(timer);
  }
}
