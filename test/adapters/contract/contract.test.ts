import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { createFakeSeller, type FakeSeller } from '../../../src/testing/index.ts';
import { CASES, type Case } from './cases.ts';
import { DOORS } from './doors.ts';
import type { DoorHarness } from './serving.ts';
import { givenFor, openSetup } from './setup.ts';
import { receiverAnswer, type WireAnswer, type WireRequest } from './wire.ts';

let seller: FakeSeller;
beforeAll(async () => {
  // What was signed for the first door is as fresh at the last one, however slow the machine is.
  vi.useFakeTimers({ toFake: ['Date'], now: Date.now() });
  seller = await createFakeSeller();
});
afterAll(async () => {
  await seller.close();
  vi.useRealTimers();
});

/** One after the other, as a seller sends them. */
async function inOrder(
  requests: readonly WireRequest[],
  ask: (request: WireRequest) => Promise<WireAnswer>,
): Promise<WireAnswer[]> {
  const answers: WireAnswer[] = [];
  for (const request of requests) answers.push(await ask(request));
  return answers;
}

const without = (answer: WireAnswer, name: string): WireAnswer => ({
  ...answer,
  headers: answer.headers.filter(([given]) => given !== name),
});

const optionsOf = ({ options, sender }: Case): Case['options'] =>
  sender ? { senders: [{ ...seller.sender, ...sender }], ...options } : options;

async function expected(of: Case, requests: readonly WireRequest[]): Promise<WireAnswer[]> {
  const { receiver } = openSetup(seller, optionsOf(of));
  if (of.stopped) await receiver.stop();
  const answers = await inOrder(requests, (request) => receiverAnswer(receiver, request));
  if (!of.stopped) await receiver.stop();
  return answers;
}

/** A case's requests, and what the receiver itself answers to them. */
interface Asked {
  readonly requests: readonly WireRequest[];
  readonly wanted: readonly WireAnswer[];
}

/** Signed once: each door is given the same bytes. */
const asked = new Map<Case, Promise<Asked>>();
const askedOf = (of: Case): Promise<Asked> => {
  const known = asked.get(of) ?? signedAndAnswered(of);
  asked.set(of, known);
  return known;
};

async function signedAndAnswered(of: Case): Promise<Asked> {
  const requests = await of.requests(givenFor(seller));
  return { requests, wanted: await expected(of, requests) };
}

const applicable = ({ lacks }: DoorHarness): readonly Case[] =>
  CASES.filter(({ needs = [] }) => needs.every((need) => lacks[need] === undefined));

describe('the receiver itself', () => {
  test.each(CASES)('$name: $status', async (of) => {
    const { wanted } = await askedOf(of);
    expect(wanted.map(({ status }) => status)).toEqual(of.status);
  });
});

describe.concurrent.each(DOORS)('$name gives byte for byte the receiver’s answers', (door) => {
  test.each(applicable(door))('$name', async (of) => {
    const { requests, wanted } = await askedOf(of);
    const { receiver, handled } = openSetup(seller, optionsOf(of));
    await using open = await door.open(receiver);
    if (of.stopped) await receiver.stop();
    const answers = await inOrder(requests, open.ask);
    const own =
      door.lacks.length === undefined ? wanted : wanted.map((answer) => without(answer, 'content-length'));
    expect(answers).toEqual(own);
    if (of.status.includes(200) && !of.eventless) expect(handled.length).toBeGreaterThan(0);
    else expect(handled).toEqual([]);
    await receiver.stop();
  });
});

test('a case that an adapter cannot support is excluded by name with its reason, and no other', () => {
  const excluded = DOORS.map((door) => [door.name, CASES.length - applicable(door).length]);
  expect(Object.fromEntries(excluded)).toMatchInlineSnapshot(`
    {
      "express 4": 2,
      "express 5": 2,
      "fastify 4": 2,
      "fastify 5": 2,
      "fastify 5, HTTP/2": 6,
      "fetch": 6,
      "hono 3 on Node": 2,
      "hono 4 on Node": 2,
      "hono 4 on Node, HTTP/2": 6,
      "lambda, HTTP API (payload 2.0)": 5,
      "lambda, REST API (payload 1.0)": 8,
      "lambda, function URL (payload 2.0)": 5,
      "lambda, load balancer": 11,
      "lambda, load balancer with multi-value headers": 8,
      "node": 2,
      "node, HTTP/2": 6,
    }
  `);
});
