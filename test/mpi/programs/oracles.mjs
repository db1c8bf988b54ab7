// Programs with a known answer on several ranks. Argument: JSON with `oracle`, runtime options and sizes.
import { createHash } from 'node:crypto';
import { cholesky, redistribute } from '../../../dist/algorithms/index.js';
import { Runtime, read, readWrite, TiledMatrix, task, write } from '../../../dist/index.js';
import { report } from './report.mjs';

const given = JSON.parse(process.argv[2] ?? '{}');
const { oracle = 'pingPong', gpus = 0, comm = 'auto', size = {}, ...rest } = given;
const runtime = await Runtime.create({
  workers: 1,
  gpus,
  comm,
  checked: true,
  gpuMemory: '16MiB',
  hostMemory: '256MiB',
  ...rest,
});
const { rank, ranks } = runtime;

const increment = task({
  name: 'increment',
  flows: { tile: readWrite('f64') },
  params: { by: 'f64' },
  body: ({ tile, by }) => {
    for (let i = 0; i < tile.length; i++) tile[i] += by;
  },
});
const fill = task({
  name: 'fill',
  flows: { x: write('f64') },
  params: { n: 'i32', value: 'f64' },
  kernel: 'fill_f64',
});
const add = task({
  name: 'add',
  flows: { a: read('f64'), b: readWrite('f64') },
  body: ({ a, b }) => {
    for (let i = 0; i < b.length; i++) b[i] += a[i];
  },
});
const copyTile = task({
  name: 'copy',
  flows: { b: write('f64'), a: read('f64') },
  params: { bytes: 'i32' },
  kernel: 'copy_bytes',
});
const n = size.n ?? 64;
const allEqual = (values, expected) => values.every((v) => v === expected);

const oracles = {
  /** A token visits all ranks in turn, `rounds` times; each adds its part. */
  async pingPong() {
    const rounds = size.rounds ?? 10;
    const token = runtime.data(new Float64Array(n), { name: 'token', rank: 0 });
    const figures = await runtime.run((graph) => {
      for (let i = 0; i < rounds * ranks; i++)
        graph.insert(increment, { tile: token, by: 3 }, { rank: i % ranks });
    });
    const values = await token.read();
    return { ok: allEqual(values, 3 * rounds * ranks), first: values[0], report: figures };
  },
  /** Every rank contributes r*10 .. r*10+9; a tree adds them up: 780 for four ranks. */
  async reduce() {
    const parts = [];
    for (let r = 0; r < ranks; r++) {
      const values = new Float64Array(n).fill(0);
      for (let i = 0; i < 10; i++) values[0] += r * 10 + i;
      parts.push(
        runtime.data(r === rank ? values : new Float64Array(n), { name: `part-${r}`, rank: r }),
      );
    }
    const figures = await runtime.run((graph) => {
      for (let step = 1; step < ranks; step *= 2) {
        for (let r = 0; r + step < ranks; r += 2 * step)
          graph.insert(add, { a: parts[r + step], b: parts[r] });
      }
    });
    const values = await parts[0].read();
    const last = ranks * 10 - 1;
    return { ok: values[0] === (last * (last + 1)) / 2, sum: values[0], report: figures };
  },
  /** One writes v0, readers on all ranks see v0, one writes v1, readers see v1; several times. */
  async writeAfterRead() {
    const rounds = size.rounds ?? 20;
    const x = runtime.data('f64', n, { name: 'x', rank: 0 });
    const seen = [];
    for (let r = 0; r < ranks; r++)
      for (let k = 0; k < 5; k++)
        seen.push(runtime.data(new Float64Array(rounds), { name: `seen-${r}-${k}`, rank: r }));
    const look = task({
      name: 'look',
      flows: { x: read('f64'), seen: readWrite('f64') },
      params: { round: 'i32' },
      body: ({ x: v, seen: s, round }) => {
        s[round] = v.every((e) => e === v[0]) ? v[0] : NaN;
      },
    });
    const figures = await runtime.run((graph) => {
      for (let round = 0; round < rounds; round++) {
        graph.insert(fill, { n, x, value: round + 1 });
        for (const s of seen) graph.insert(look, { x, seen: s, round });
      }
    });
    let ok = true;
    for (const s of seen)
      (await s.read()).forEach((v, i) => {
        if (v !== i + 1) ok = false;
      });
    return { ok, report: figures };
  },
  /** A version of one datum reaches all ranks (a tree when there are enough of them). */
  async broadcast() {
    const x = runtime.data('f64', n, { name: 'x', rank: 0 });
    const copies = Array.from({ length: ranks }, (_, r) =>
      runtime.data('f64', n, { name: `copy-${r}`, rank: r }),
    );
    const figures = await runtime.run((graph) => {
      graph.insert(fill, { n, x, value: 42 });
      for (const c of copies) graph.insert(copyTile, { bytes: n * 8, a: x, b: c });
      graph.insert(fill, { n, x, value: 43 });
    });
    let ok = true;
    for (const c of copies) if (!allEqual(await c.read(), 42)) ok = false;
    return { ok, report: figures };
  },
  /** Everybody reads everybody's tile of the step before; each checks rank and step. */
  async allToAll() {
    const steps = size.steps ?? 8;
    const tiles = Array.from({ length: 2 }, (_, g) =>
      Array.from({ length: ranks }, (_, r) =>
        runtime.data('f64', n, { name: `tile-${g}-${r}`, rank: r }),
      ),
    );
    let wrong = 0;
    const flows = { out: write('f64') };
    for (let r = 0; r < ranks; r++) flows[`in${r}`] = read('f64');
    const step = task({
      name: 'step',
      flows,
      params: { t: 'i32', me: 'i32' },
      body: (args) => {
        for (let r = 0; r < ranks; r++) {
          const input = args[`in${r}`];
          for (let i = 0; i < n; i++) if (input[i] !== (args.t - 1) * 1000 + r) wrong++;
        }
        args.out.fill(args.t * 1000 + args.me);
      },
    });
    const figures = await runtime.run((graph) => {
      for (let r = 0; r < ranks; r++) graph.insert(fill, { n, x: tiles[0][r], value: r });
      for (let t = 1; t <= steps; t++) {
        for (let r = 0; r < ranks; r++) {
          const args = { out: tiles[t & 1][r], t, me: r };
          for (let k = 0; k < ranks; k++) args[`in${k}`] = tiles[(t - 1) & 1][k];
          graph.insert(step, args);
        }
      }
    });
    return { ok: wrong === 0 && figures.tasks === steps + 1, wrong, report: figures };
  },
  /** Tiled Cholesky of a fixed matrix: every rank hashes the factor. */
  async cholesky() {
    const order = size.order ?? 96;
    const tile = size.tile ?? 16;
    const A = new TiledMatrix(
      runtime,
      'f64',
      { rows: order, tile, lower: true, name: 'A' },
      (values, row, column, m, cols) => {
        for (let c = 0; c < cols; c++) {
          for (let r = 0; r < m; r++) {
            const i = row + r;
            const j = column + c;
            values[c * m + r] = i === j ? order + 1 : 1 / (1 + Math.abs(i - j));
          }
        }
      },
    );
    const figures = await runtime.run((graph) => cholesky(graph, A));
    const factor = await A.read();
    const hash = createHash('sha256')
      .update(new Uint8Array(factor.buffer))
      .digest('hex')
      .slice(0, 16);
    const ok = factor.every((v) => Number.isFinite(v)) && factor[0] > 0;
    A.close();
    return { ok, hash, report: figures };
  },
  /** From one tiling, grid and origin to another and back: every element as before. */
  async redistribute() {
    const rows = size.rows ?? 61;
    const columns = size.columns ?? 47;
    const at = (i, j) => i * 1000 + j;
    const fillTile = (values, row, column, m, cols) => {
      for (let c = 0; c < cols; c++)
        for (let r = 0; r < m; r++) values[c * m + r] = at(row + r, column + c);
    };
    const zero = (values) => values.fill(0);
    const tall = { rows: ranks, columns: 1 };
    const wide = { rows: 1, columns: ranks, originColumn: 1 };
    const A = new TiledMatrix(
      runtime,
      'f64',
      { rows, columns, tile: 16, rankGrid: tall, name: 'A' },
      fillTile,
    );
    const B = new TiledMatrix(
      runtime,
      'f64',
      { rows, columns, tile: 11, rankGrid: wide, name: 'B' },
      zero,
    );
    const C = new TiledMatrix(
      runtime,
      'f64',
      { rows, columns, tile: 16, rankGrid: tall, name: 'C' },
      zero,
    );
    const figures = await runtime.run((graph) => {
      redistribute(graph, A, B);
      redistribute(graph, B, C);
    });
    let wrong = 0;
    for (const M of [B, C]) {
      const values = await M.read();
      for (let j = 0; j < columns; j++)
        for (let i = 0; i < rows; i++) if (values[j * rows + i] !== at(i, j)) wrong++;
    }
    return { ok: wrong === 0, wrong, report: figures };
  },
  /** Many tiles through few buffers: each is written on one rank, read on the next, and checked. */
  async storm() {
    const count = size.count ?? 300;
    const check = runtime.data(new Float64Array(ranks), { name: 'check', rank: 0 });
    const tiles = Array.from({ length: count }, (_, i) =>
      runtime.data('f64', n, { name: `t${i}`, rank: i % ranks }),
    );
    const outs = Array.from({ length: count }, (_, i) =>
      runtime.data('f64', n, { name: `o${i}`, rank: (i + 1) % ranks }),
    );
    const figures = await runtime.run((graph) => {
      for (let i = 0; i < count; i++) graph.insert(fill, { n, x: tiles[i], value: i + 0.5 });
      for (let i = 0; i < count; i++)
        graph.insert(copyTile, { bytes: n * 8, a: tiles[i], b: outs[i] });
    });
    let wrong = 0;
    for (let i = 0; i < count; i++) if (!allEqual(await outs[i].read(), i + 0.5)) wrong++;
    check.close();
    return { ok: wrong === 0, wrong, report: figures };
  },
};

const result = await oracles[oracle]();
await runtime.close();
// Reads on other ranks are served until all have closed.
const memory = runtime.memory();
report(rank, { ranks, oracle, ...result, pinned: memory.map((m) => m.pinned) });
if (!result.ok) process.exitCode = 1;
