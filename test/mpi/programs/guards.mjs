// The promises of the guards between ranks, with and without the guards: `{ what, off }`.
import '../../../dist/test/support/removable-guards.js';
import { setGuard } from '../../../dist/devices/simulated/cases/set-guard.js';
import { Runtime, read, task, write } from '../../../dist/index.js';
import { report } from './report.mjs';

const { what, off } = JSON.parse(process.argv[2]);
if (off !== undefined) setGuard(off, false);
const runtime = await Runtime.create({ workers: 1, gpus: 1, gpuMemory: '256KiB' });
const { rank } = runtime;

const programs = {
  /** A task follows one of the other rank that takes its time. */
  async after() {
    const times = [];
    const note = task({
      name: 'note',
      flows: { own: write('f64') },
      params: { ms: 'f64' },
      body: async ({ own, ms }) => {
        // It takes its time: the order is to hold all the same.
        await new Promise((resolve) => setTimeout(resolve, ms));
        own[0] = Number(process.hrtime.bigint() / 1000n);
        times.push(own[0]);
      },
    });
    const first = runtime.data('f64', 1, { rank: 0 });
    const second = runtime.data('f64', 1, { rank: 1 });
    await runtime.run((graph) => {
      const before = graph.insert(note, { own: first, ms: 200 });
      graph.insert(note, { own: second, ms: 0 }, { after: [before] });
    });
    return { time: times[0] };
  },
  /** Many independent tasks pull one tile each. */
  async pull() {
    const n = 1024;
    const { pulls } = runtime.peers;
    let most = 0;
    const begin = pulls.begin;
    pulls.begin = (member) => {
      most = Math.max(most, pulls.reserved[1] / pulls.limit[1]);
      begin(member);
    };
    const make = task({
      name: 'make',
      flows: { x: write('f64') },
      params: { n: 'i32', value: 'f64' },
      kernel: 'fill_f64',
    });
    const use = task({
      name: 'use',
      flows: { y: write('f64'), x: read('f64', { fetch: 'pull' }) },
      params: { bytes: 'i32' },
      kernel: 'copy_bytes',
    });
    await runtime.run((graph) => {
      for (let i = 0; i < 60; i++) {
        const x = runtime.data('f64', n, { rank: 0 });
        const y = runtime.data('f64', n, { rank: 1 });
        graph.insert(make, { x, n, value: i });
        graph.insert(use, { x, y, bytes: n * 8 }, { device: 0 });
        x.close();
        y.close();
      }
    });
    return { most };
  },
  /** Rank 1 inserts a task with another parameter. */
  async digest() {
    const set = task({
      name: 'set',
      flows: { x: write('f64') },
      params: { value: 'f64' },
      body: ({ x, value }) => {
        x[0] = value;
      },
    });
    const x = runtime.data('f64', 1, { rank: 0 });
    try {
      await runtime.run((graph) => {
        graph.insert(set, { x, value: rank });
      });
      return { code: 'none' };
    } catch (error) {
      return { code: error.code };
    }
  },
  /** Rank 1 alone reads a datum of its own. */
  async calls() {
    const x = runtime.data(new Float64Array(1), { rank: 1 });
    if (rank === 1) await x.read();
    return runtime.close().then(
      () => ({ code: 'none' }),
      (error) => ({ code: error.code }),
    );
  },
};
const result = await programs[what]();
await runtime.close().catch(() => {});
report(rank, result);
