import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { makeKey, prepare, requestBytes, sign, type Wire } from '../lib/deliveries.ts';
import { closeAll, openConnections, sendAll } from '../lib/load.ts';
import { atMost, figure, QUICK, type Figure, type Figures } from '../lib/measure.ts';
import { startServerProcess, type ServerJob } from '../lib/servers.ts';

const UPLOADS = QUICK ? 50 : 4_000;
const ROUNDS = QUICK ? 2 : 5;
const SENT = 16 * 1024;
const ANNOUNCED = 64 * 1024;
const HONEST = QUICK ? 20 : 500;
/** Deliveries before: what a server leaves behind as garbage it has left behind then. */
const WARM = QUICK ? 20 : 4_000;

const KEY = await makeKey('ed25519');
let events = 0;

/** An upload's beginning: the headers of `wire`, with another length, and the first part of a body. */
function beginning({ rawHeaders }: Wire, spoil: (value: string) => string): Uint8Array {
  const headers = rawHeaders.map((each, at) => {
    const name = rawHeaders[at - 1]?.toLowerCase();
    if (at % 2 === 0) return each;
    if (name === 'content-length') return String(ANNOUNCED);
    return name === 'signature' ? spoil(each) : each;
  });
  return requestBytes({ rawHeaders: headers, body: new Uint8Array(SENT) });
}

/** Another byte in the middle of a signature. */
function spoiled(value: string): string {
  const middle = Math.floor(value.length / 2);
  return `${value.slice(0, middle)}${value[middle] === 'A' ? 'B' : 'A'}${value.slice(middle + 1)}`;
}

const same = (value: string): string => value;

async function stall(port: number, bytes: Uint8Array): Promise<Socket> {
  const socket = connect({ port, host: '127.0.0.1' });
  socket.on('error', () => undefined).on('data', () => undefined);
  await once(socket, 'connect');
  await new Promise((resolve) => {
    socket.write(bytes, resolve);
  });
  return socket;
}

interface Held {
  /** For each upload that stopped. */
  readonly kib: number;
  /** Honest deliveries that were not answered 200 meanwhile. */
  readonly refused: number;
}

/** A new server each time: what was held is measured by its peak. */
async function heldBy(kind: ServerJob['kind'], bytes: Uint8Array): Promise<Held> {
  const samples = await prepare(1, KEY, 'ed25519', 1024);
  const server = await startServerProcess({ framework: 'node', kind, key: KEY, samples });
  const stalled: Socket[] = [];
  try {
    const honest = async (count: number): Promise<number> => {
      const requests: Uint8Array[] = [];
      for (let at = 0; at < count; at += 1) requests.push(requestBytes(await sign(events++, KEY, 1024)));
      const connections = await openConnections(server.port, 8);
      let refused = 0;
      for (const request of requests) {
        await sendAll(connections.slice(0, 1), [request], 200).catch(() => (refused += 1));
      }
      closeAll(connections);
      return refused;
    };
    // Warm, and with the connections that are idle.
    await honest(WARM);
    const before = server.peakKiB();
    while (stalled.length < UPLOADS) {
      stalled.push(...(await Promise.all(Array.from({ length: 50 }, () => stall(server.port, bytes)))));
    }
    const refused = await honest(HONEST);
    await sleep(200);
    return { kib: (server.peakKiB() - before) / UPLOADS, refused };
  } finally {
    for (const socket of stalled) socket.destroy();
    await server.stop();
  }
}

/** Memory of a server for each upload that stops, beside that of a bare one, which keeps what comes. */
export async function measure(): Promise<Figures> {
  const uploads: Readonly<Record<string, (value: string) => string>> = {
    'by strangers': spoiled,
    'with headers that were sent before': same,
  };
  const results: Record<string, Figure> = {};
  for (const [name, spoil] of Object.entries(uploads)) {
    const [door, bare, refused]: [number[], number[], number[]] = [[], [], []];
    for (let round = 0; round < ROUNDS; round += 1) {
      const bytes = beginning(await sign(events++, KEY, 1024), spoil);
      const held = await heldBy('door', bytes);
      door.push(held.kib);
      refused.push(held.refused);
      bare.push((await heldBy('bare', bytes)).kib);
    }
    results[`${name}: memory an upload, KiB`] = figure(door);
    results[`${name}: the same of a bare server, KiB`] = figure(bare);
    results[`${name}: memory an upload ÷ bare server`] = atMost(
      figure(door.map((each, at) => each / (bare[at] ?? Number.NaN))),
      1.2,
    );
    results[`${name}: honest deliveries refused`] = atMost(figure(refused), 0);
  }
  return results;
}
