import { createRequire } from 'node:module';
import type { Sodium } from '../../src/crypto/for-tests.ts';

const require = createRequire(import.meta.url);

/** As its users load it; it has no types of its own. */
export const sodiumNative = require('sodium-native') as Sodium;
