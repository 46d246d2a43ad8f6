/** What `ctx.transaction` hands to its function. */
export interface HandedOut<C> {
  readonly tx: C;
  /** From now on each call is refused: the connection serves others. */
  readonly revoke: () => void;
}

/** Stable. */
const CODE = 'transaction_over';

const lateUse = (): Error =>
  Object.assign(
    new Error(
      'ctx.transaction: its client was used after the transaction had ended; nothing was written. Await each query in the function.',
    ),
    { code: CODE },
  );

/** Methods of clients that answer later: what they are refused with too. */
const ASYNC: ReadonlySet<PropertyKey> = new Set(['query', 'execute']);

/**
 * The client, as long as the transaction lasts. What was not awaited comes later, when the connection may be in another
 * event's transaction.
 * @param onLateUse told of each call that was refused.
 */
export function handOut<C extends object>(client: C, onLateUse: (error: Error) => void): HandedOut<C> {
  let isOver = false;
  const refuse = (name: PropertyKey, args: readonly unknown[]): unknown => {
    const error = lateUse();
    onLateUse(error);
    const callback = args.at(-1);
    if (!ASYNC.has(name)) throw error;
    if (typeof callback === 'function') {
      queueMicrotask(() => void Reflect.apply(callback, undefined, [error]));
      return undefined;
    }
    const refused = Promise.reject(error);
    // Nobody may be listening, and that would end the process.
    refused.catch(() => undefined);
    return refused;
  };
  const tx: C = new Proxy(client, {
    get: (target, name) => {
      const member: unknown = Reflect.get(target, name, target);
      if (typeof member !== 'function') return member;
      return (...args: unknown[]): unknown => {
        if (isOver) return refuse(name, args);
        if (name === 'release') throw new Error(RELEASED);
        const result: unknown = Reflect.apply(member, target, args);
        return result === target ? tx : result;
      };
    },
  });
  return {
    tx,
    revoke: () => {
      isOver = true;
    },
  };
}

const RELEASED =
  'ctx.transaction: the function released its client, which the transaction still needs. Leave it out: it is given back at the end.';
