import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { makeKey, prepare } from '../lib/deliveries.ts';
import { startBare, startServe, startSink } from '../lib/forwarders.ts';
import {
  alternate,
  atLeast,
  type Contestant,
  type Figures,
  IN_SERVICE,
  plan,
  rate,
  ratio,
} from '../lib/measure.ts';
import { requestContestants, type Server } from '../lib/request-contestants.ts';

const EVENTS = 1_500;
const PAIRS = 15;

/** Names of who takes part. */
const BARE = 'bare';
const VERIFYING = 'bare, verifying';
const SERVE = 'serve';

/**
 * Events a second from the seller's request to the sink's answer: 1 KB, Ed25519, a task each. The load is in this process, each
 * server in its own, and they share one sink.
 * @param part connections of the seller, and events under way at the sink.
 */
export async function measure(part: string): Promise<Figures> {
  const width = Number(part);
  const folder = mkdtempSync(join(tmpdir(), 'proto-webhooks-bench-'));
  const key = await makeKey('ed25519');
  const prepared = await prepare(512, key, 'ed25519', 1024);
  const samples = prepared.map(({ base, bareSignature }) => ({ base, bareSignature }));
  const sink = await startSink();
  const servers: (Server & { readonly process: { readonly stop: () => Promise<void> } })[] = [];
  try {
    const common = { sinkPort: sink.port, width };
    const bare = { ...common, file: join(folder, 'bare') };
    servers.push({ name: BARE, process: await startBare(bare) });
    const verifies = { key, samples };
    const verifying = { ...common, file: join(folder, 'verifying'), verifies };
    servers.push({ name: VERIFYING, process: await startBare(verifying) });
    servers.push({ name: SERVE, process: await startServe(join(folder, 'serve'), { ...common, key }) });
    const contestants = requestContestants(servers, key, width).map((one): Contestant => ({
      ...one,
      setUp: async (count) => {
        await one.setUp?.(count);
        await sink.expect(count);
      },
      run: async (count, round) => {
        await one.run(count, round);
        await sink.arrived();
      },
    }));
    const times = await alternate(contestants, plan(EVENTS, PAIRS, IN_SERVICE));
    return {
      [`${part} at once: bare forwarder, events/s`]: rate(times, BARE),
      [`${part} at once: serve on SQLite, events/s`]: rate(times, SERVE),
      [`${part} at once: serve ÷ bare forwarder, by events/s`]: atLeast(ratio(times, BARE, SERVE), 0.5),
      [`${part} at once: serve ÷ bare forwarder with one crypto.verify, by events/s`]: ratio(
        times,
        VERIFYING,
        SERVE,
      ),
    };
  } finally {
    for (const { process } of servers) await process.stop();
    await sink.stop();
    rmSync(folder, { recursive: true, force: true });
  }
}
