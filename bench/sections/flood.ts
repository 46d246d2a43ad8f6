import { makeKey, prepare, requestBytes, sign, type Wire } from '../lib/deliveries.ts';
import { closeAll, openConnections, percentile, sendAtRate } from '../lib/load.ts';
import { atMost, figure, QUICK, type Figures } from '../lib/measure.ts';
import { startServerProcess } from '../lib/servers.ts';

const GOOD_PER_SECOND = 500;
const BAD_PER_SECOND = 2000;
const SECONDS = QUICK ? 0.5 : 4;
const REPETITIONS = QUICK ? 2 : 7;
const CONNECTIONS = 32;

/** A signature that verifies under no key: another byte in its middle. */
function spoiled(wire: Wire): Uint8Array {
  const signature = wire.headers['Signature'] ?? '';
  const middle = Math.floor(signature.length / 2);
  const other = signature[middle] === 'A' ? 'B' : 'A';
  const bad = `${signature.slice(0, middle)}${other}${signature.slice(middle + 1)}`;
  return requestBytes({
    ...wire,
    rawHeaders: wire.rawHeaders.map((each) => (each === signature ? bad : each)),
  });
}

const KEY = await makeKey('ed25519');
let events = 0;

async function signed(count: number): Promise<Wire[]> {
  const all: Wire[] = [];
  for (let at = 0; at < count; at += 1) all.push(await sign(events++, KEY, 1024));
  return all;
}

/** @returns p99 of the good deliveries, ms. */
async function load(port: number, flooded: boolean): Promise<number> {
  const goodRequests = (await signed(GOOD_PER_SECOND * SECONDS)).map(requestBytes);
  // A bad signature is refused before its nonce is looked up: a hundred different ones are sent again and again.
  const different = (await signed(100)).map(spoiled);
  const badRequests = Array.from(
    { length: flooded ? BAD_PER_SECOND * SECONDS : 0 },
    (_, at) => different[at % different.length] as Uint8Array,
  );
  const good = await openConnections(port, CONNECTIONS);
  const bad = await openConnections(port, CONNECTIONS);
  const [latencies] = await Promise.all([
    sendAtRate({ connections: good, requests: goodRequests, perSecond: GOOD_PER_SECOND, expected: 200 }),
    sendAtRate({ connections: bad, requests: badRequests, perSecond: BAD_PER_SECOND, expected: 401 }),
  ]);
  closeAll([...good, ...bad]);
  return percentile(latencies, 0.99);
}

/** Good deliveries at 500/s through node:http, with and without 2,000 bad signatures a second beside them. */
export async function measure(): Promise<Figures> {
  const samples = await prepare(1, KEY, 'ed25519', 1024);
  const server = await startServerProcess({ framework: 'node', kind: 'door', key: KEY, samples });
  try {
    const calm: number[] = [];
    const flooded: number[] = [];
    // The first round warms up.
    for (let round = -1; round < REPETITIONS; round += 1) {
      const order = round % 2 === 0 ? [false, true] : [true, false];
      for (const flood of order) {
        const p99 = await load(server.port, flood);
        if (round >= 0) (flood ? flooded : calm).push(p99);
      }
    }
    return {
      'good deliveries at 500/s alone: p99, ms': figure(calm),
      'good deliveries at 500/s beside 2,000 bad signatures/s: p99, ms': figure(flooded),
      'p99 of good deliveries, flooded ÷ alone': atMost(
        figure(flooded.map((each, at) => each / (calm[at] ?? Number.NaN))),
        2,
      ),
    };
  } finally {
    await server.stop();
  }
}
