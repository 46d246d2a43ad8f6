import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import type { Completion } from './backends.ts';

/**
 * The completions of a Redis store, from the file to which the server appended every write before it answered: that of
 * a process that did not live to hear of it is there too. (`src/stores/redis/lua/rows.lua` has the form of a row.)
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
    const key = /^[^{]*\{[^}]*\}:2:r:(.*)$/s.exec(name?.toString() ?? '')?.[1];
    if (key === undefined || value === undefined || verb?.toString().toUpperCase() !== 'SET') continue;
    const { state, owner } = recordOf(value);
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

/** Version and head, and behind a line feed what the driver says of the record, as JSON. */
function recordOf(value: Buffer): { readonly state: string; readonly owner: string } {
  const text = value.toString();
  if (!/^\d{16} \[/.test(text)) throw new Error('not a row of the store');
  const { state, owner } = JSON.parse(text.slice(text.indexOf('\n') + 1)) as {
    state: string;
    owner?: string;
  };
  return { state, owner: owner ?? '' };
}
