// One rank makes a different call. Argument: JSON with `way` and `odd`, the rank with the different call.
import '../../../dist/test/support/removable-guards.js';
import { setGuard } from '../../../dist/devices/simulated/cases/set-guard.js';
import { Runtime, read, readWrite, task, write } from '../../../dist/index.js';
import { report } from './report.mjs';

const { way, odd, off } = JSON.parse(process.argv[2]);
if (off !== undefined) setGuard(off, false);
const runtime = await Runtime.create({ workers: 1, hostMemory: '64MiB', window: 256 });
const { rank, ranks } = runtime;
const isOdd = rank === odd;
const began = performance.now();
const step = task({
  name: 'step',
  flows: { x: readWrite('f64') },
  body: ({ x }) => {
    x[0] += 1;
  },
});
const use = task({
  name: 'use',
  flows: { a: read('f64'), b: write('f64') },
  body: ({ a, b }) => {
    b[0] = a[0];
  },
});
const failing = task({
  name: 'failing',
  flows: { x: readWrite('f64') },
  body: () => {
    throw new Error('as asked for');
  },
});
const other = (odd + 1) % ranks;
// Calls 1 and 2: one datum travels in its announcement, one does not.
const small = runtime.data(new Float64Array(8), { name: 'small', rank: odd });
const large = runtime.data(new Float64Array(65536), { name: 'large', rank: other });
const run = (program = () => {}) => runtime.run(program, { name: 'step' });
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
function compute(ms) {
  const until = performance.now() + ms;
  while (performance.now() < until);
}

const ways = {
  async read() {
    if (isOdd) await large.read();
    await run((graph) => graph.insert(step, { x: large }));
  },
  /** Its owner needs no reader. */
  async 'read-own'() {
    if (isOdd) await small.read();
    await run((graph) => graph.insert(step, { x: large }));
  },
  async 'read-own-at-the-end'() {
    if (isOdd) await small.read();
  },
  async set() {
    if (isOdd) await large.set(new Float64Array(65536));
    await run((graph) => graph.insert(step, { x: large }));
  },
  async 'close-datum'() {
    if (isOdd) small.close();
    await run((graph) => graph.insert(step, { x: large }));
  },
  async run() {
    if (isOdd) await run((graph) => graph.insert(use, { a: large, b: small }));
    await large.read();
  },
  async order() {
    await (isOdd ? large : small).read();
    await (isOdd ? small : large).read();
  },
  async data() {
    if (isOdd) runtime.data('f64', 8, { name: 'more' });
    await run((graph) => graph.insert(step, { x: large }));
  },
  async size() {
    runtime.data('f64', isOdd ? 16 : 8, { name: 'more' });
    await run((graph) => graph.insert(step, { x: large }));
  },
  async 'close-runtime'() {
    if (isOdd) await runtime.close();
    await run((graph) => graph.insert(step, { x: large }));
  },
  /** The program function of a run makes it. */
  async inside() {
    await run(async (graph) => {
      graph.insert(step, { x: large });
      if (isOdd) await large.read();
    });
  },
  /** The thread is blocked by a full window. */
  async window() {
    if (isOdd) await large.read();
    await run((graph) => {
      for (let i = 0; i < 10_000; i++) graph.insert(use, { a: large, b: small });
    });
  },
  // --- Nothing is wrong with these ---
  /** One rank is so late that the others ask for its calls. */
  async late() {
    if (isOdd) compute(1500);
    const reads = [small.read(), large.read()];
    if (!isOdd) await Promise.all(reads);
    // Here its event loop runs meanwhile.
    else await pause(1500);
    await run(async (graph) => {
      // Late again, within the run.
      if (isOdd) await pause(1200);
      graph.insert(use, { a: large, b: small });
      await small.read();
      if (isOdd) compute(1200);
    });
    if (isOdd) compute(1500);
  },
  /** Two programs and a plain read at a time, which end as they like. */
  async together() {
    const both = [300, 900].map((ms, i) =>
      run(async (graph) => {
        for (let n = 0; n < 4; n++) {
          graph.insert(step, { x: i === 0 ? small : large });
          await (i === 0 ? small : large).read();
          await pause((rank === odd ? 1200 - ms : ms) / 4);
        }
      }),
    );
    await Promise.all(both);
  },
  /** The ranks leave the program of a run that fails at different places. */
  async failed() {
    let code = '';
    try {
      await run(async (graph) => {
        for (let n = 0; n < 6; n++) {
          graph.insert(n === 3 ? failing : step, { x: large });
          await large.read();
          await small.read();
        }
      });
    } catch (error) {
      code = error.code;
    }
    if (!/^ERR_(TASK|PEER)_FAILED$|^ERR_DATUM_POISONED$/.test(code))
      throw new Error(`ended with ${code}`);
    await run((graph) => graph.insert(step, { x: small }));
    if ((await small.read())[0] !== 1) throw new Error('the runtime is of no use any more');
  },
};

const describe = (error) => ({ code: error.code ?? error.name, message: error.message });
let first = { code: 'none' };
try {
  await ways[way]();
} catch (error) {
  first = describe(error);
}
const seconds = (performance.now() - began) / 1000;
let close = 'well';
try {
  await runtime.close();
} catch (error) {
  close = error.code;
  if (first.code === 'none') first = describe(error);
}
report(rank, { first, seconds, close });
