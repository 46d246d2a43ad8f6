import { once } from 'node:events';
import type { Socket } from 'node:net';
import { connect, createServer } from 'node:net';

/**
 * What befalls one exchange: a request that was waited for, and its reply. Each is decided by bytes, none by time.
 * - `hold`: the request goes through, the reply waits for `release()`;
 * - `swallow`: the request goes through, the reply and whatever follows it on this connection do not;
 * - `drop`: the request goes through; when the reply has come the connection is reset in its place;
 * - `tear`: the same, behind the reply's first byte;
 * - `cut`: half of the request goes through, then the connection is reset;
 * - `mute`: nothing goes through from now on, in connections that are opened until `heal()` neither. None of them is
 *   ever closed, nor comes back to life: they are half-open.
 */
export type Mishap = 'hold' | 'swallow' | 'drop' | 'tear' | 'cut' | 'mute';

/** A mishap on its way. */
export interface Armed {
  /** Resolves when it has struck: for `hold`, `drop` and `tear` the server has done what it was asked to by then. */
  readonly struck: Promise<void>;
  /** Lets a held reply go. */
  readonly release: () => void;
}

/** A TCP proxy on 127.0.0.1, before one port. */
export interface TcpProxy {
  readonly port: number;
  /** The next request that has a text in it, or is just these bytes, meets the mishap; one at a time. */
  readonly arm: (mishap: Mishap, request: string | Buffer) => Armed;
  /** Every reply comes so much later. Ms. */
  readonly delay: (ms: number) => void;
  /** New connections come through again; those that met a mishap are reset, but half-open ones stay as they are. */
  readonly heal: () => void;
  /** New connections go to `port`; those that are there stay, as after a name's or an address' move. */
  readonly lead: (port: number) => void;
  /** All connections are reset; new ones go to `port`. */
  readonly retarget: (port: number) => void;
  readonly close: () => Promise<void>;
}

interface Mine {
  readonly mishap: Mishap;
  readonly request: string | Buffer;
  readonly strike: () => void;
  held: (() => void)[];
  released: boolean;
}

/** One connection through the proxy. */
interface Pair {
  readonly near: Socket;
  readonly far: Socket;
  /** What the near side said since the far side spoke last. */
  said: Buffer;
  /** What its current exchange has met. */
  met?: Mine;
  /** Half-open: nothing comes through, and the near side is not told. */
  dead: boolean;
}

interface State {
  readonly pairs: Set<Pair>;
  mine: Mine | undefined;
  mute: boolean;
  delayMs: number;
  target: number;
  readonly host: string;
}

const isMeant = ({ request }: Mine, said: Buffer): boolean =>
  typeof request === 'string' ? said.includes(request) : said.equals(request);

function reset({ near, far }: Pair): void {
  near.resetAndDestroy();
  far.destroy();
}

/** A request, or a part of one. */
function fromNear(state: State, pair: Pair, chunk: Buffer): void {
  const { mine } = state;
  pair.said = Buffer.concat([pair.said, chunk]);
  if (pair.dead) return;
  if (mine && isMeant(mine, pair.said)) {
    state.mine = undefined;
    pair.met = mine;
    if (mine.mishap === 'mute') mute(state);
    if (mine.mishap === 'cut') {
      pair.far.write(chunk.subarray(0, chunk.length >> 1), () => reset(pair));
      mine.strike();
      return;
    }
    if (mine.mishap === 'mute' || mine.mishap === 'swallow') mine.strike();
  }
  if (!pair.dead) pair.far.write(chunk);
}

function mute(state: State): void {
  state.mute = true;
  for (const pair of state.pairs) pair.dead = true;
}

/** A reply, or a part of one. */
function fromFar(state: State, pair: Pair, chunk: Buffer): void {
  const { met } = pair;
  pair.said = Buffer.alloc(0);
  if (pair.dead || met?.mishap === 'swallow') return;
  if (met && !met.released) {
    if (met.mishap === 'tear') pair.near.write(chunk.subarray(0, 1), () => reset(pair));
    if (met.mishap === 'drop') reset(pair);
    if (met.mishap === 'hold') met.held.push(() => pair.near.write(chunk));
    met.strike();
    return;
  }
  if (state.delayMs > 0) setTimeout(() => pair.near.write(chunk), state.delayMs);
  else pair.near.write(chunk);
}

function joined(state: State, near: Socket): void {
  const far = connect(state.target, state.host);
  const pair: Pair = { near, far, said: Buffer.alloc(0), dead: state.mute };
  state.pairs.add(pair);
  near.on('data', (chunk: Buffer) => fromNear(state, pair, chunk));
  far.on('data', (chunk: Buffer) => fromFar(state, pair, chunk));
  near.on('error', () => undefined);
  far.on('error', () => undefined);
  near.on('close', () => {
    state.pairs.delete(pair);
    far.destroy();
  });
  far.on('close', () => {
    if (!pair.dead) near.destroy();
  });
}

function armed(state: State, mishap: Mishap, request: string | Buffer): Armed {
  let strike = (): void => undefined;
  const struck = new Promise<void>((resolve) => {
    strike = resolve;
  });
  const mine: Mine = { mishap, request, strike, held: [], released: false };
  state.mine = mine;
  return {
    struck,
    release: () => {
      mine.released = true;
      for (const write of mine.held.splice(0)) write();
    },
  };
}

export async function startProxy(target: number, host: string = '127.0.0.1'): Promise<TcpProxy> {
  const state: State = { pairs: new Set(), mine: undefined, mute: false, delayMs: 0, target, host };
  const server = createServer((near) => joined(state, near)).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('no port');
  const resetAll = (): void => {
    for (const pair of state.pairs) reset(pair);
  };
  return {
    port: address.port,
    arm: (mishap, request) => armed(state, mishap, request),
    delay: (ms) => {
      state.delayMs = ms;
    },
    heal: () => {
      state.mine = undefined;
      state.mute = false;
      for (const pair of state.pairs) if (pair.met && !pair.dead) reset(pair);
    },
    lead: (port) => {
      state.target = port;
    },
    retarget: (port) => {
      state.target = port;
      state.mute = false;
      resetAll();
    },
    close: async () => {
      resetAll();
      server.close();
      await once(server, 'close');
    },
  };
}
