/**
 * Run in a process of its own, whose environment names a proxy and turns off certificate checks: fetches by the
 * transport, then by the platform, and says as JSON what came of it.
 */
import { nodeFetch } from '../../../src/keys/for-tests.ts';
import { createTestNetwork, PUBLIC } from '../../support/network.ts';
import { called, HOST, modules } from './bench-transport.ts';

const port = Number(process.env['SERVER_PORT']);
const network = createTestNetwork({ [HOST]: [PUBLIC] }, port);
const { resolve, dial } = network;

async function outcome(fetching: Promise<Response>): Promise<string> {
  try {
    return await (await fetching).text();
  } catch (error) {
    return error instanceof Error ? error.message : 'failed';
  }
}

const ca = process.env['CA_PEM'];
const trusting = nodeFetch(modules(), { resolve, dial, ...(ca !== undefined && { ca }) });
const strict = nodeFetch(modules(), { resolve, dial });

const result = {
  trusted: await outcome(called(trusting)),
  untrusted: await outcome(called(strict)),
  platform: await outcome(fetch(`http://${HOST}/by-platform`)),
};
process.stdout.write(JSON.stringify(result));
