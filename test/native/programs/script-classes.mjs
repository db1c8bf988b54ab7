// Task classes for script workers. Tests import it, and script workers load it.
import { threadId } from 'node:worker_threads';
import { list, read, readWrite, task, write } from '../../../dist/index.js';
import { loadNative } from '../../../dist/native/index.js';

export { Runtime } from '../../../dist/index.js';

const module = import.meta.url;
const one = { x: readWrite('f64') };

/** x <- 3 x + seed: not commutative, so the order shows. */
const mix = (x, seed) => {
  for (let i = 0; i < x.length; i++) x[i] = (3 * x[i] + seed) % 1_000_003;
};
export const mixes = task({
  name: 'mixes',
  module,
  flows: one,
  params: { seed: 'i32' },
  body: ({ x, seed }) => mix(x, seed),
});
export const mixesLater = task({
  name: 'mixesLater',
  module,
  flows: one,
  params: { seed: 'i32' },
  body: async ({ x, seed }) => {
    // The body goes on in a later turn of the event loop.
    await new Promise((resolve) => setTimeout(resolve, 1));
    mix(x, seed);
  },
});
/** The same on the engine's thread, and the sum of two data as a kernel of the host. */
export const mixesHere = task({
  name: 'mixesHere',
  flows: one,
  params: { seed: 'i32' },
  body: ({ x, seed }) => mix(x, seed),
});
export const adds = task({
  name: 'adds',
  flows: { to: readWrite('f64'), x: read('f64') },
  params: { n: 'i32' },
  kernel: 'add_f64',
});

export const types = task({
  name: 'types',
  module,
  flows: {
    f64: read('f64'),
    f32: read('f32'),
    i32: read('i32'),
    u32: read('u32'),
    u8: read('u8'),
    to: write('f64'),
  },
  params: { half: 'f64', whole: 'i32', yes: 'bool' },
  body: ({ f64, f32, i32, u32, u8, to, half, whole, yes }) => {
    to.set([f64[1], f32[1], i32[1], u32[1], u8[1], half, whole, yes === true ? 1 : 0]);
  },
});
export const many = task({
  name: 'many',
  module,
  flows: Object.fromEntries(
    Array.from({ length: 12 }, (_, i) => [`x${i}`, i === 0 ? readWrite('f64') : read('f64')]),
  ),
  params: { a: 'f64', b: 'f64' },
  body: ({ x0, a, b, ...others }) => {
    x0[0] = Object.values(others).reduce((sum, x) => sum + x[0] * x.length, a * b);
  },
});

export const sums = task({
  name: 'sums',
  module,
  flows: { parts: list(read('f64')), to: readWrite('f64') },
  params: { factor: 'f64' },
  body: ({ parts, to, factor }) => {
    to[0] = parts.reduce((sum, part) => sum + part[0] * part.length, 0) * factor;
  },
});

/** Where the data lie, the thread, and the number of turns of the event loop. */
let turns = 0;
export const where = task({
  name: 'where',
  module,
  flows: one,
  body: ({ x }) => {
    x[0] = Number(loadNative().address(x));
    x[1] = threadId;
    x[2] = turns;
    setImmediate(() => turns++);
  },
});
export const spins = task({
  name: 'spins',
  module,
  flows: one,
  params: { ms: 'f64' },
  body: ({ x, ms }) => {
    const until = performance.now() + ms;
    while (performance.now() < until);
    x[0]++;
  },
});
export const awaits = task({
  name: 'awaits',
  module,
  flows: one,
  params: { ms: 'f64' },
  // The caller says how long.
  body: ({ ms }) => new Promise((resolve) => setTimeout(resolve, ms)),
});

/** The second parameter may be a datum. */
export const scales = task({
  name: 'scales',
  module,
  flows: one,
  params: { by: 'f64', plus: 'f64' },
  body: ({ x, by, plus }) => {
    for (let i = 0; i < x.length; i++) x[i] = by * x[i] + plus;
  },
});

// --- Failures -------------------------------------------------------------------------------------------------------

const fails = (name, body) => task({ name, module, flows: one, body });
export const throws = fails('throws', () => {
  throw Object.assign(new RangeError('too far', { cause: new TypeError('deep') }), { code: 'E7' });
});
export const throwsText = fails('throwsText', () => {
  throw 'just words';
});
export const throwsFunction = fails('throwsFunction', () => {
  throw () => {};
});
export const rejects = fails('rejects', async () => {
  await null;
  throw new Error('later');
});
export const misuses = fails('misuses', () => {
  task({ name: '' });
});
export const exits = fails('exits', () => process.exit(3));
export const crashes = fails('crashes', () => {
  setTimeout(() => {
    throw new Error('out of nowhere');
  }, 1);
  return new Promise(() => {});
});
/** Throws, or ends its thread, if it is told to. */
export const mayThrow = task({
  name: 'mayThrow',
  module,
  flows: one,
  params: { code: 'i32' },
  body: ({ x, code }) => {
    if (code === 1) throw Object.assign(new RangeError('too far'), { code: 'E7' });
    if (code === 2) process.exit(3);
    x[0]++;
  },
});
export const asksForGraph = task({
  name: 'asksForGraph',
  module,
  flows: one,
  body: (_, { graph }) => graph,
});
export const writesInput = task({
  name: 'writesInput',
  module,
  flows: { x: read('f64'), to: write('f64') },
  body: ({ x, to }) => {
    to[0] = 1;
    x[1] = 9;
  },
});
let kept;
export const keeps = task({
  name: 'keeps',
  module,
  flows: one,
  body: ({ x }) => {
    kept = { x, part: x.subarray(1) };
  },
});
export const usesKept = task({
  name: 'usesKept',
  module,
  flows: one,
  params: { how: 'i32' },
  body: ({ x, how }) => {
    if (how === 0) x[0] = kept.x[0];
    else if (how === 1) kept.x[0] = 5;
    else if (how === 2) kept.x.fill(5);
    else x[0] = kept.part.length;
  },
});
export const again = (definition) => task(definition);
task({ name: 'hidden', module, flows: one, body: () => {} });
export const hides = () => task({ name: 'hidden', module, flows: one, body: () => {} });
export const other = task({ name: 'other', module, flows: one, body: () => {} });
export const differs = () =>
  task({ name: 'other', module, flows: { x: readWrite('f32') }, body: () => {} });
export const missing = task({
  name: 'missing',
  module: new URL('./no-such-module.mjs', import.meta.url).href,
  flows: one,
  body: () => {},
});
export const program = task({
  name: 'program',
  module: new URL('./script-program.mjs', import.meta.url).href,
  flows: one,
  body: () => {},
});
