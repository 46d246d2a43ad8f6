import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import type { Completion } from './backends.ts';

/**
 * The completions of a Redis store, from the file to which the server appended every write before it answered: that of
 * a process that did not live to hear of it is there too. (`src/stores/redis/lua/rows.ts` has the form of a record.)
 * @param folder of the server, whose file was never rewritten.
 */
export function completionsInAof(folder: string): Completion[] {
  const logs = join(folder, 'appendonlydir');
  const files = readdirSync(logs).filter((name) => name.endsWith('.incr.aof'));
  if (files.length !== 1) throw new Error(`the append-only file was rewritten: ${files.join(', ')}`);
  const seen = new Map<string, string>();
  const completions: Completion[] = [];
  for (const command of commandsOf(readFileSync(join(logs, files[0] ?? '')))) {
    const [verb, name, value] = command;
    const key = /^[^{]*\{[^}]*\}:r:(.*)$/s.exec(name?.toString() ?? '')?.[1];
    if (key === undefined || value === undefined || verb?.toString().toUpperCase() !== 'SET') continue;
    const [state = '', , , owner = ''] = packedTexts(value);
    const now = `${state} ${owner}`;
    if (state === 'applied' && seen.get(key) !== now) completions.push({ key, owner });
    seen.set(key, now);
  }
  return completions;
}

/** RESP: arrays of bulk strings, with timestamps as `#` lines where they are on. */
function* commandsOf(log: Buffer): Generator<Buffer[]> {
  let at = 0;
  const line = (): string => {
    const end = log.indexOf('\r\n', at);
    const text = log.toString('latin1', at, end);
    at = end + 2;
    return text;
  };
  while (at < log.length) {
    const head = line();
    if (!head.startsWith('*')) throw new Error(`no command in the append-only file: ${head}`);
    const parts: Buffer[] = [];
    for (let left = Number(head.slice(1)); left > 0; left -= 1) {
      const length = Number(line().slice(1));
      parts.push(log.subarray(at, at + length));
      at += length + 2;
    }
    yield parts;
  }
}

/** The first four fields, each a text or nil: state, claim, claimedBy, owner. (MessagePack: fixstr, str 8, nil.) */
function packedTexts(value: Buffer): string[] {
  const texts: string[] = [];
  for (let at = 0; texts.length < 4;) {
    const type = value[at] ?? 0xc0;
    const [head, length] = type === 0xd9 ? [2, value[at + 1] ?? 0] : [1, type === 0xc0 ? 0 : type & 0x1f];
    if (type !== 0xc0 && type !== 0xd9 && type >> 5 !== 5) throw new Error('not a record of the store');
    texts.push(value.toString('utf8', at + head, at + head + length));
    at += head + length;
  }
  return texts;
}
