import { createSocket, type RemoteInfo } from 'node:dgram';
import { once } from 'node:events';
import { onTestFinished } from 'vitest';
import { parseAddress } from '../../src/keys/for-tests.ts';

/** What a name server says of one name; of one that it does not know it says that there is no such name. */
export interface DnsAnswer {
  readonly ipv4?: readonly string[];
  readonly ipv6?: readonly string[];
  /** Types of questions that it never answers. */
  readonly silent?: readonly DnsType[];
  /** 2: a server's failure (RFC 1035 §4.1.1). */
  readonly responseCode?: number;
}

export type DnsType = 'A' | 'AAAA';

export const SILENT_NAME: DnsAnswer = { silent: ['A', 'AAAA'] };

/** A name server on loopback that says what the test tells it to, and remembers what it was asked. */
export interface DnsServer {
  /** `address:port`. */
  readonly server: string;
  /** Names, each once, in the order in which they were first asked for. */
  readonly names: () => string[];
  /** Resolves when a name was asked for. */
  readonly asked: (name: string) => Promise<void>;
}

interface Question {
  readonly name: string;
  readonly type: number;
  /** Where the question ends in the message. */
  readonly end: number;
}

const TYPES: Readonly<Record<DnsType, number>> = { A: 1, AAAA: 28 };
const NO_SUCH_NAME = 3;

/** RFC 1035 §4.1.2; questions are not compressed. */
function questionOf(message: Buffer): Question {
  const labels: string[] = [];
  let at = 12;
  for (let length = message[at] ?? 0; length > 0; length = message[at] ?? 0) {
    labels.push(message.toString('latin1', at + 1, at + 1 + length));
    at += 1 + length;
  }
  return { name: labels.join('.').toLowerCase(), type: message.readUInt16BE(at + 1), end: at + 5 };
}

/** RFC 1035 §4.1.3; the name is a pointer to that of the question. */
function record(type: number, address: string): Buffer {
  const data = parseAddress(address) ?? new Uint8Array();
  const head = Buffer.alloc(12);
  head.writeUInt16BE(0xc00c, 0);
  head.writeUInt16BE(type, 2);
  head.writeUInt16BE(1, 4);
  head.writeUInt32BE(0, 6);
  head.writeUInt16BE(data.length, 10);
  return Buffer.concat([head, data]);
}

function reply(message: Buffer, { type, end }: Question, answer: DnsAnswer | undefined): Buffer {
  const addresses = (type === TYPES.A ? answer?.ipv4 : answer?.ipv6) ?? [];
  const head = Buffer.from(message.subarray(0, 12));
  const code = answer === undefined ? NO_SUCH_NAME : (answer.responseCode ?? 0);
  head.writeUInt16BE(0x8180 | code, 2);
  head.writeUInt16BE(1, 4);
  head.writeUInt16BE(addresses.length, 6);
  head.writeUInt32BE(0, 8);
  const records = addresses.map((address) => record(type, address));
  return Buffer.concat([head, message.subarray(12, end), ...records]);
}

export async function startDnsServer(zone: ReadonlyMap<string, DnsAnswer>): Promise<DnsServer> {
  const socket = createSocket('udp4');
  const names = new Set<string>();
  let look = (): void => undefined;
  socket.on('message', (message: Buffer, from: RemoteInfo) => {
    const question = questionOf(message);
    names.add(question.name);
    look();
    const answer = zone.get(question.name);
    if (answer?.silent?.some((type) => TYPES[type] === question.type)) return;
    socket.send(reply(message, question, answer), from.port, from.address);
  });
  socket.bind(0, '127.0.0.1');
  await once(socket, 'listening');
  onTestFinished(() => void socket.close());
  return {
    server: `127.0.0.1:${socket.address().port}`,
    names: () => [...names],
    asked: (name) =>
      new Promise((resolve) => {
        const before = look;
        look = () => {
          before();
          if (names.has(name)) resolve();
        };
        look();
      }),
  };
}
