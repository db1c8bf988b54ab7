// Data between ranks under pressure: a blocked JavaScript thread, hardly any device memory, failing
// flushes. Argument: JSON with `what` and options.

import { list, Runtime, read, readWrite, task, write } from '../../../dist/index.js';
import { report } from './report.mjs';

const { what, size = {}, ...rest } = JSON.parse(process.argv[2]);
const runtime = await Runtime.create({
  workers: 1,
  checked: what !== 'tiles',
  hostMemory: '512MiB',
  gpuMemory: '16MiB',
  ...rest,
});
const { rank, ranks } = runtime;
const fill = task({
  name: 'fill',
  flows: { x: write('f64') },
  params: { n: 'i32', value: 'f64' },
  kernel: 'fill_f64',
});
const copyTile = task({
  name: 'copy',
  flows: { b: write('f64'), a: read('f64') },
  params: { bytes: 'i32' },
  kernel: 'copy_bytes',
});
const allEqual = (values, expected) => values.every((v) => v === expected);

const programs = {
  /** Transfers that were commanded go on while the program's thread is busy. */
  async blocked() {
    const n = 2 ** 20;
    const a = runtime.data('f64', n, { name: 'a', rank: 0, device: 0 });
    const b = runtime.data('f64', n, { name: 'b', rank: 1, device: 0 });
    // Both ranks hold their threads for 200 ms as soon as the transfer is commanded; the comm threads do not care.
    const hold = task({
      name: 'hold',
      flows: { s: readWrite('f64') },
      body: () => {
        const end = performance.now() + 200;
        while (performance.now() < end);
      },
    });
    const s = Array.from({ length: ranks }, (_, r) =>
      runtime.data(new Float64Array(1), { name: `s${r}`, rank: r }),
    );
    const began = performance.now();
    const figures = await runtime.run((graph) => {
      graph.insert(fill, { x: a, n, value: 1 });
      graph.insert(copyTile, { a, b, bytes: n * 8 });
      for (const each of s) graph.insert(hold, { s: each });
    });
    const seconds = (performance.now() - began) / 1000;
    const values = await b.read();
    return { ok: allEqual(values, 1), seconds, figures };
  },
  /** Many tiles, few buffers: each is produced here, wanted there, and checked. */
  async tiles() {
    const n = size.n ?? 2048;
    const count = size.count ?? 201;
    const rounds = size.rounds ?? 3;
    const tiles = Array.from({ length: count }, (_, i) =>
      runtime.data('f64', n, { name: `t${i}`, rank: i % ranks }),
    );
    const sums = Array.from({ length: count }, (_, i) =>
      runtime.data(new Float64Array(1), { name: `s${i}`, rank: (i + 1) % ranks }),
    );
    const outs = Array.from({ length: count }, (_, i) =>
      runtime.data('f64', n, { name: `o${i}`, rank: (i + 1) % ranks }),
    );
    const check = task({
      name: 'check',
      flows: { a: read('f64'), s: readWrite('f64') },
      params: { value: 'f64' },
      body: ({ a, s, value }) => {
        if (!allEqual(a, value)) s[0] += 1;
      },
    });
    const figures = await runtime.run((graph) => {
      for (let r = 0; r < rounds; r++) {
        for (let i = 0; i < count; i++)
          graph.insert(fill, { x: tiles[i], n, value: r * count + i });
        for (let i = 0; i < count; i++)
          graph.insert(copyTile, { a: tiles[i], b: outs[i], bytes: n * 8 });
        for (let i = 0; i < count; i++)
          graph.insert(check, { a: outs[i], s: sums[i], value: r * count + i });
      }
    });
    let wrong = 0;
    for (const s of sums) wrong += (await s.read())[0];
    return { ok: wrong === 0, wrong, figures };
  },
  /**
   * A device of few tiles and a slow consumer of many: pushed inputs pile up in host memory, pulled ones take their
   * turn on the device. Every tile is closed behind its consumer.
   */
  async pull() {
    const n = 1024;
    const count = 60;
    const fetch = size.fetch;
    const use = task({
      name: 'use',
      flows: { sum: readWrite('f64'), x: read('f64', { fetch }) },
      params: { count: 'i32' },
      kernel: 'add_f64',
    });
    const sum = runtime.data(new Float64Array(n), { name: 'sum', rank: 1, device: 0 });
    const gate = runtime.data(new Float64Array(1), { name: 'gate', rank: 1 });
    let receivedAhead = -1;
    const wait = task({
      name: 'wait',
      flows: { gate: readWrite('f64'), sum: readWrite('f64') },
      // Nobody can use a tile before this ends.
      body: async ({ gate: g }) => {
        const received = () => runtime.peers.report().receivedBytes;
        const until = performance.now() + (fetch === 'pull' ? 200 : 20_000);
        while (performance.now() < until && received() < (fetch === 'pull' ? 1 : count * n * 8))
          await new Promise((go) => setTimeout(go, 5));
        receivedAhead = received();
        g[0] = 1;
      },
    });
    const figures = await runtime.run((graph) => {
      graph.insert(wait, { gate, sum });
      for (let i = 0; i < count; i++) {
        const x = runtime.data('f64', n, { name: `x${i}`, rank: 0 });
        graph.insert(fill, { x, n, value: i });
        graph.insert(use, { sum, x, count: n });
        x.close();
      }
    });
    const values = await sum.read();
    const ok = allEqual(values, (count * (count - 1)) / 2);
    const used = runtime.peers.pulls.reserved.reduce((a, b) => a + b, 0);
    return { ok, figures, receivedAhead, reserved: used };
  },
  /** Tasks with lists of data of all ranks, from none to all of them; the numbers differ from task to task. */
  async lists() {
    const { fetch } = size;
    const n = 2048;
    const count = 5 * ranks;
    const tiles = Array.from({ length: count }, (_, i) =>
      runtime.data('f64', n, { name: `t${i}`, rank: i % ranks, device: 0 }),
    );
    const sums = Array.from({ length: count + 1 }, (_, i) =>
      runtime.data('f64', 2, { name: `s${i}`, rank: (i + 1) % ranks }),
    );
    const gather = task({
      name: 'gather',
      flows: { to: write('f64'), parts: list(read('f64', { fetch })) },
      body: ({ to, parts }) => {
        to[0] = parts.reduce((all, part) => all + part[n - 1], 0);
        to[1] = parts.length;
      },
    });
    const rounds = 4;
    await runtime.run((graph) => {
      for (let r = 1; r <= rounds; r++) {
        for (let i = 0; i < count; i++)
          graph.insert(fill, { x: tiles[i], n, value: r * i }, { device: 0 });
        for (let i = 0; i <= count; i++)
          graph.insert(gather, { to: sums[i], parts: tiles.slice(0, i) });
      }
    });
    let ok = true;
    for (let i = 0; i <= count; i++) {
      const [sum, parts] = await sums[i].read();
      ok &&= sum === (rounds * i * (i - 1)) / 2 && parts === i;
    }
    return { ok };
  },
  /** Parameters that are data of other ranks: the value of the moment goes to the rank of the task. */
  async steered() {
    const n = 64;
    const factor = runtime.data(Float64Array.of(1), { name: 'factor', rank: 0 });
    const one = runtime.data(Float64Array.of(1), { name: 'one', rank: 0 });
    const add = task({
      name: 'addSteered',
      flows: { to: readWrite('f64'), from: read('f64') },
      params: { count: 'i32', factor: 'f64' },
      kernel: 'add_f64',
    });
    const tiles = Array.from({ length: 2 * ranks }, (_, i) =>
      runtime.data(new Float64Array(n), { name: `t${i}`, rank: i % ranks }),
    );
    const ones = tiles.map((_, i) =>
      runtime.data(new Float64Array(n).fill(1), { rank: i % ranks }),
    );
    const rounds = 20;
    await runtime.run((graph) => {
      for (let r = 0; r < rounds; r++) {
        for (const [i, to] of tiles.entries())
          graph.insert(add, { to, from: ones[i], count: n, factor });
        graph.insert(add, { to: factor, from: one, count: 1, factor: 1 });
      }
    });
    const values = await Promise.all(tiles.map((tile) => tile.read()));
    return { ok: values.every((all) => all.every((v) => v === (rounds * (rounds + 1)) / 2)) };
  },
  /** Every rank decides on the same values, of data of each rank in turn, and all runs go on after them. */
  async values() {
    const data = Array.from({ length: ranks }, (_, r) =>
      runtime.data('f64', 8, { name: `x${r}`, rank: r, device: 0 }),
    );
    const seen = [];
    await runtime.run(async (graph) => {
      for (let round = 0; round < 30; round++) {
        const x = data[round % ranks];
        graph.insert(fill, { x, n: 8, value: round }, { device: 0 });
        const value = await graph.value(x);
        seen.push(value);
        // What is inserted depends on the value.
        if (value % 2 === 0) graph.insert(fill, { x, n: 8, value: -value }, { device: 0 });
        seen.push(await graph.value(x));
      }
    });
    const expected = [...Array(30).keys()].flatMap((v) => [v, v % 2 === 0 ? -v : v]);
    // The failing task waits until every rank has asked for its result.
    let asked;
    const hasAsked = new Promise((resolve) => {
      asked = resolve;
    });
    const wait = task({
      name: 'wait',
      flows: { go: write('f64') },
      body: async ({ go }) => {
        await hasAsked;
        go[0] = 1;
      },
    });
    const fails = task({
      name: 'fails',
      flows: { x: write('f64'), after: list(read('f64')) },
      body: () => {
        throw new Error('as asked for');
      },
    });
    const go = Array.from({ length: ranks }, (_, r) =>
      runtime.data('f64', 1, { name: `go${r}`, rank: r }),
    );
    let last;
    await runtime
      .run(async (graph) => {
        for (const each of go) graph.insert(wait, { go: each });
        graph.insert(fails, { x: data[0], after: go });
        last = graph.value(data[0]).catch(({ code }) => code);
        asked();
        await last;
      })
      .done.catch(() => {});
    const code = await last;
    return { ok: seen.length === expected.length && seen.every((v, i) => v === expected[i]), code };
  },
  /** A version from another rank's GPU comes into this one's; a flush that fails rejects the run. */
  async flush() {
    const n = 4096;
    const a = runtime.data('f64', n, { name: 'a', rank: 0, device: 0 });
    const b = runtime.data('f64', n, { name: 'b', rank: 1, device: 0 });
    try {
      const { network } = await runtime.run((graph) => {
        graph.insert(fill, { x: a, n, value: 1 }, { device: 0 });
        graph.insert(copyTile, { a, b, bytes: n * 8 }, { device: 0 });
      });
      return { ok: true, flushes: network.flushes };
    } catch (error) {
      return { ok: true, code: error.code, cause: error.cause?.code ?? null };
    }
  },
};
const result = await programs[what]();
await runtime.close();
report(rank, { ...result, pinned: runtime.memory().map((m) => m.pinned) });
if (!result.ok) process.exitCode = 1;
