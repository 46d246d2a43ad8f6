import { mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import {
  createRegistrations,
  type MovePlan,
  type MoveRequest,
  type MoveStep,
} from '../../../src/registrations/index.ts';
import type { Registrations, RouteScheme } from '../../../src/registrations/index.ts';
import { whileAway } from '../../support/while-away.ts';
import { type Front, startFront } from '../market/front.ts';
import { type SellerServer, startServer } from '../market/seller-process.ts';
import { gateOf } from '../processes/clock.ts';
import { figuresOf } from '../processes/figures.ts';
import type { Fleet } from '../processes/fleet.ts';
import { type Ground, type GroundOptions, type Noted, onGround, TIMES } from '../processes/ground.ts';
import { openForJudge } from '../processes/stores.ts';
import { inTurns, strikesOf } from '../processes/strikes.ts';
import type { Mode, MoveBreak, Role, World } from '../processes/wire.ts';
import { isNamedUrl, judgeMoves, type MovingFacts, type MovingVerdict, type Retirement } from './judge.ts';
import type { BuyOrder } from './mover.ts';
import type { Point } from './points.ts';
import type { Manner, MovingAgent, MovingLine, MovingSellerOptions } from './wire.ts';

export interface RunOptions extends Pick<GroundOptions, 'kind' | 'mode' | 'seed' | 'deadlineMs' | 'shared'> {
  readonly buys: number;
  readonly sellers: number;
  /** kill -9 by the driver, beside those that die at a point. */
  readonly kills: number;
  /** How many die at each point. */
  readonly deaths: number;
  /** All by default. */
  readonly points?: readonly Point[];
  /** The credentials are renewed; else all move to another host. */
  readonly renews?: true;
  /** Without news for so long, time is moved. Ms. */
  readonly patienceMs: number;
  /** How long a place of a seller is held for an update. A process that stands still for half of it is a mistake to the judge. Ms. */
  readonly callMs: number;
  /** So often time passes at most, then all is judged as it is: with a mistake, not all has to end. */
  readonly passes?: number;
  /** A mistake that the judge has to find. */
  readonly breaks?: MoveBreak;
}

export interface Result {
  readonly verdict: MovingVerdict;
  readonly figures: Readonly<Record<string, number | string>>;
  /** Points at which processes died. */
  readonly points: readonly string[];
}

const MANNERS: readonly Manner[] = [
  'done',
  'conflict',
  'ends-after',
  'submitted',
  'too-late',
  'silent',
  'late',
  'ends-before',
  'forgetful',
  'hangs',
];
const REFUSING: readonly Manner[] = ['refuses', 'fails', ...MANNERS];
const SCHEMES: readonly (RouteScheme | undefined)[] = [undefined, 'HMAC-SHA256', 'Bearer'];
const KEEPS = [undefined, 'newest', 'first'] as const;

const ROLES: Readonly<Record<Mode, readonly Role[]>> = { inline: ['door', 'door'], inbox: ['both', 'both'] };
/** Of `callMs`, after which a call is aborted. */
const WAIT_SHARE = 0.75;
const LOOK_MS = 100;
/** Between two events of all media buys together, ms. */
const APART_MS = 50;
const MINUTE = 60_000;
const DAY = 1_440 * MINUTE;
const SELLER = fileURLToPath(new URL('fixtures/seller.ts', import.meta.url));

/** Every other seller refuses some. */
const agentsOf = ({ sellers, renews }: RunOptions): readonly MovingAgent[] =>
  Array.from({ length: sellers }, (_, at) => {
    const keeps = renews && KEEPS[at % KEEPS.length];
    return {
      name: `seller-${at}`,
      manners: at % 2 === 0 ? MANNERS : REFUSING,
      lags: at % 3 === 0 ? 3 : 0,
      ...(keeps && { keeps }),
    };
  });

interface Field {
  readonly options: RunOptions;
  readonly agents: readonly MovingAgent[];
  readonly ground: Ground;
  readonly seller: SellerServer<MovingLine>;
  /** Who looks on: of no process of the buyer's. */
  readonly registrations: Registrations;
  readonly old: string;
  /** By mistake. */
  readonly forces: boolean;
  /** What processes are to have from their next start on. */
  world: World;
  readonly file: string;
  /** By how much who looks on is ahead. Ms. */
  offsetMs: number;
  /** By how much the sellers are ahead, and since when. Unix ms on the machine's clock. */
  readonly clocks: { readonly from: number; readonly offsetMs: number }[];
}

const saveWorld = (file: string, world: World): void => writeFileSync(file, JSON.stringify(world));

/** Waits for as long as the seller needs, where `fetch` would end it after five minutes. */
const control = ({ seller, ground: { signal } }: Field, verb: string): Promise<void> =>
  new Promise((resolve, reject) => {
    const asked = request(`${seller.origin}/control/${verb}`, { method: 'POST', signal }, (response) => {
      response.resume().on('end', resolve).on('error', reject);
    });
    asked.on('error', reject).end();
  });

/** All processes die, and start with another world; nothing is delivered meanwhile. */
async function restart(field: Field, changes: Partial<World>): Promise<void> {
  const { ground, options, file } = field;
  const { fleet, signal } = ground;
  await control(field, 'hold');
  const gate = gateOf(file);
  mkdirSync(gate);
  while (readdirSync(gate).length < ROLES[options.mode].length) {
    signal.throwIfAborted();
    const problem = fleet.problem();
    if (problem) throw problem;
    for (const { pid } of fleet.members()) fleet.killThis(pid);
    await sleep(5);
  }
  field.world = { ...field.world, ...changes };
  field.offsetMs = field.world.offsetMs;
  saveWorld(file, field.world);
  // No process is alive: nothing is asked by a clock that is ahead of the seller's.
  field.clocks.push({ from: Date.now(), offsetMs: field.offsetMs });
  await control(field, `clock?ms=${field.offsetMs}`);
  // At once: processes write into it while it is there.
  const open = `${gate}-${field.offsetMs}-${performance.now()}`;
  renameSync(gate, open);
  rmSync(open, { recursive: true });
  await fleet.whole(signal);
  await control(field, 'go');
}

/** Until a process says that it is done. */
async function ask({ ground }: Field, path: string, body: object): Promise<void> {
  const { fleet, signal } = ground;
  for (;;) {
    signal.throwIfAborted();
    const { port } = await fleet.door(signal);
    try {
      const url = `http://127.0.0.1:${port}/moves/${path}`;
      const response = await fetch(url, { method: 'POST', body: JSON.stringify(body), signal });
      const text = await response.text();
      if (response.ok) return;
      if (path === 'buy') throw new Error(`a media buy was not bought: ${text}`);
    } catch (error) {
      if (path === 'buy') throw error;
    }
    await sleep(LOOK_MS);
  }
}

/** A media buy that is to be bought: its number says how its seller takes updates. */
interface ToBuy {
  readonly agent: MovingAgent;
  readonly number: number;
  readonly scheme: RouteScheme | undefined;
}

/** Of each seller in turn. */
const allToBuy = ({ buys, renews }: RunOptions, agents: readonly MovingAgent[]): readonly ToBuy[] =>
  Array.from({ length: buys }, (_, at) => {
    const of = at % agents.length;
    const agent = agents[of];
    if (!agent) throw new Error('there is no agent');
    const turn = Math.floor(at / agents.length);
    return { agent, number: turn + 3 * of, scheme: renews && SCHEMES[turn % SCHEMES.length] };
  });

const nameOf = ({ number }: ToBuy): string => `buy-${number}`;

async function buyAll(field: Field): Promise<void> {
  const { options, agents, seller } = field;
  await inTurns(allToBuy(options, agents), 8, (one) => {
    const { agent, scheme } = one;
    const agentUrl = `${seller.origin}/${agent.name}/mcp`;
    const order: BuyOrder = { name: nameOf(one), agentUrl, ...(scheme && { scheme }) };
    return ask(field, 'buy', order);
  });
}

const isRefusing = (manner: Manner | undefined): boolean => manner === 'refuses' || manner === 'fails';

/** Media buys whose seller takes no update of them. */
const refusingOf = (options: RunOptions, agents: readonly MovingAgent[]): ReadonlySet<string> =>
  new Set(
    allToBuy(options, agents)
      .filter(({ agent: { manners }, number }) => isRefusing(manners[number % manners.length]))
      .map((one) => `${one.agent.name}-${nameOf(one)}`),
  );

/** Whoever looks on reads every page. */
async function stepsOf(field: Field, wanted: MoveRequest): Promise<readonly MoveStep[]> {
  const { registrations } = field;
  const steps: MoveStep[] = [];
  let after: string | undefined;
  do {
    const page = { ...wanted, ...(after !== undefined && { after }) };
    const plan: MovePlan = await whileAway(() => registrations.plan(page), field.ground.signal);
    steps.push(...plan.steps);
    after = plan.next;
  } while (after !== undefined);
  return steps;
}

const isNamed = ({ state }: MoveStep): boolean => state === 'refused' || state === 'unknown';
const agentOf = (agentUrl: string): string => new URL(agentUrl).pathname.split('/')[1] ?? '';

/** Asks to retire every URL of every seller: at last those alone to which nobody is told to send any more. */
async function retireAll(field: Field, isLast: boolean): Promise<readonly Retirement[]> {
  const { registrations, seller, agents, options, old, forces } = field;
  const has = isLast ? urlsIn(seller.log()) : [];
  const done: Retirement[] = [];
  for (const { name } of agents) {
    const agent = { agentUrl: `${seller.origin}/${name}/mcp`, limit: 1000 };
    const { urls } = await whileAway(() => registrations.state(agent), field.ground.signal);
    for (const { agentUrl, base, route } of urls) {
      if (!isLast && !options.renews && base !== old) continue;
      if (has.some((url) => isNamedUrl(url, { base, route }))) continue;
      const is = { agent: agentOf(agentUrl), base, route, isLast };
      const url = { agentUrl, base, route };
      const isRetired = await whileAway(
        () => registrations.retire(url, { force: forces }),
        field.ground.signal,
      ).then(
        () => true,
        (error: unknown) => {
          if ((error as { readonly code?: string }).code !== 'url_in_use') throw error;
          return false;
        },
      );
      done.push({ ...is, at: Date.now() + field.offsetMs, isRetired });
    }
  }
  return done;
}

/** To which media buys send in the end. */
function urlsIn(log: readonly MovingLine[]): readonly string[] {
  const last = new Map<string, readonly string[]>();
  for (const line of log) {
    if (line.what === 'has')
      last.set(
        line.buy,
        [line.reports, line.push].filter((url) => url !== undefined),
      );
  }
  return [...last.values()].flat();
}

/**
 * Time passes at once: now a quarter of an hour, so that what waits is due; now a day, after which sellers have forgotten request
 * keys, and no event is under way that is older.
 */
async function pass(field: Field, count: number): Promise<void> {
  const isDay = count % 3 === 2;
  if (isDay) await control(field, 'drain');
  await restart(field, { offsetMs: field.world.offsetMs + (isDay ? DAY + 15 * MINUTE : 15 * MINUTE) });
}

/** Until every media buy has moved, or is named. Where nothing happens any more, time passes. */
async function settle(
  field: Field,
  request: MoveRequest,
  notice: (done: number) => void,
): Promise<readonly Retirement[]> {
  const { options, ground } = field;
  const retirements: Retirement[] = [];
  let fewest = Infinity;
  let since = performance.now();
  // On a slow machine a process that has just started needs longer than that.
  let { patienceMs } = options;
  let passed = 0;
  for (;;) {
    ground.signal.throwIfAborted();
    const problem = ground.fleet.problem();
    if (problem) throw problem;
    const open = (await stepsOf(field, request)).filter((step) => !isNamed(step)).length;
    if (open === 0) return retirements;
    if (open < fewest) {
      fewest = open;
      since = performance.now();
      notice(options.buys - open);
      retirements.push(...(await retireAll(field, false)));
    }
    if (performance.now() - since > patienceMs) {
      if (passed === options.passes) return retirements;
      await pass(field, passed);
      passed += 1;
      patienceMs *= 2;
      since = performance.now();
    }
    await sleep(LOOK_MS);
  }
}

/** When processes were killed, on the sellers' clock. */
function deathsOf({ ground, clocks }: Field): ReadonlyMap<number, number> {
  return new Map(
    [...ground.fleet.deaths()].map(([pid, at]) => {
      const { offsetMs = 0 } = clocks.findLast(({ from }) => from <= at) ?? {};
      return [pid, at + offsetMs];
    }),
  );
}

async function play(field: Field): Promise<MovingFacts> {
  const { options, agents, ground, world, old } = field;
  const { deaths, points, renews } = options;
  const request: MoveRequest = renews ? { renew: true } : {};
  await buyAll(field);
  const offsetMs = renews ? 31 * DAY : 0;
  await restart(field, {
    offsetMs,
    bases: renews ? [old] : world.bases.toReversed(),
    deaths,
    ...(points && { points }),
  });
  await control(field, 'begin');
  await ask(field, 'apply', request);
  const strikes = strikesOf(options.kills, options.buys, () => ground.fleet.kill(ground.signal));
  const retirements = [...(await settle(field, request, strikes.notice))];
  await strikes.rest();
  retirements.push(...(await settle(field, request, () => undefined)));
  await control(field, 'finish');
  retirements.push(...(await retireAll(field, false)));
  const named = (await stepsOf(field, request)).filter(isNamed).map(({ mediaBuyId = '' }) => mediaBuyId);
  // A seller may have gone on with a former credential: it counts for a month, and for what may be sent again.
  field.offsetMs += (renews ? 33 : 2) * DAY + 10 * MINUTE;
  retirements.push(...(await retireAll(field, true)));
  await control(field, 'last');
  const noted: Noted = await ground.finish();
  const [base] = field.world.bases;
  return {
    ...noted,
    log: field.seller.log(),
    retirements,
    named: new Set(named),
    refusing: refusingOf(options, agents),
    callMs: options.callMs,
    deaths: deathsOf(field),
    ...(!renews && base !== undefined && { base }),
  };
}

function countsOf({ log, retirements, named, ledger }: MovingFacts): Readonly<Record<string, number>> {
  const updates = log.filter((line) => line.what === 'asked' && line.operation === 'update_media_buy');
  const answers = (said: string): number =>
    log.filter((line) => line.what === 'answered' && line.said === said).length;
  return {
    requests: updates.length,
    updates: new Set(updates.map((line) => ('key' in line ? line.key : ''))).size,
    conflicts: answers('CONFLICT'),
    submitted: answers('submitted'),
    unanswered: log.filter((line) => line.what === 'gone').length,
    events: log.filter((line) => line.what === 'event').length,
    posts: log.filter((line) => line.what === 'post').length,
    named: named.size,
    retireRefused: retirements.filter(({ isRetired }) => !isRetired).length,
    retired: retirements.filter(({ isRetired }) => isRetired).length,
    polled: ledger.filter((line) => line.what === 'run' && line.told?.source === 'poll').length,
  };
}

/** Media buys of many sellers move under load, while processes are killed; then the sellers' log is read. */
export async function run({ breaks, ...options }: RunOptions): Promise<Result> {
  const began = performance.now();
  const folder = mkdtempSync(join(tmpdir(), 'proto-webhooks-moving-'));
  const file = join(folder, 'world');
  let fleet: Fleet | undefined;
  const over = new AbortController();
  const fronts: Front[] = [];
  const base = async (): Promise<string> => {
    const front = await startFront(async () => {
      if (!fleet) throw new Error('no process serves yet');
      return (await fleet.door(over.signal)).port;
    });
    fronts.push(front);
    return `http://127.0.0.1:${front.port}/webhooks`;
  };
  const old = await base();
  const bases = options.renews ? [old] : [old, await base()];
  const world: World = { offsetMs: 0, bases, deaths: 0 };
  saveWorld(file, world);
  const moves = { world: file, ...(breaks && { breaks }) };
  const buys = { baseUrl: old, callMs: options.callMs, moves };
  try {
    return await onGround({ ...options, ...TIMES, roles: ROLES[options.mode], buys }, async (ground) => {
      fleet = ground.fleet;
      const agents = agentsOf(options);
      const told: Omit<MovingSellerOptions, 'port'> = {
        folder: join(ground.folder, 'seller'),
        seed: options.seed,
        agents,
        everyMs: options.buys * APART_MS * 2,
        waitMs: WAIT_SHARE * options.callMs,
      };
      const seller = await startServer<MovingLine>(SELLER, told, join(options.shared, 'compiled'));
      let field: Field | undefined;
      const open = openForJudge(ground.backend.place, { clockOffsetMs: () => field?.offsetMs ?? 0 });
      const registrations = createRegistrations({
        store: open.store,
        baseUrl: bases.toReversed(),
        secrets: ['of-every-process-of-this-one-run'],
        allowLoopback: true,
      });
      const forces = breaks === 'retires-early';
      field = {
        forces,
        options,
        agents,
        ground,
        seller,
        registrations,
        old,
        world,
        file,
        offsetMs: 0,
        clocks: [],
      };
      try {
        await open.store.open();
        const facts = await play(field);
        const verdict = judgeMoves(facts);
        const points = facts.ledger.flatMap((line) => (line.what === 'die' && line.point ? line.point : []));
        const counts = { buys: options.buys, sellers: options.sellers, ...countsOf(facts) };
        return {
          verdict,
          figures: { ...counts, ...figuresOf(options, ground, facts, verdict, began) },
          points: [...new Set(points)].toSorted(),
        };
      } finally {
        seller.destroy();
        await open.store.close();
        await open.end();
      }
    });
  } finally {
    over.abort();
    await Promise.all(fronts.map((front) => front.close()));
    rmSync(folder, { recursive: true, force: true });
  }
}
