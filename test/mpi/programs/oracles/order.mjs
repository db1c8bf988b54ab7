// Order across ranks: tokens, chains, trees, readers and writers of one datum, random dependencies.
import { read, readWrite, task } from '../../../../dist/index.js';
import { add, allEqual, COUNT, closeAll, collector, copy, fetch, fill, random } from './world.mjs';

/** A token visits the host and every GPU of every rank in turn; each adds the ramp: tile[i] = visits * i. */
export async function pingPong({ runtime, ranks, places }) {
  const { problems, check } = collector();
  const rounds = 5;
  const ramp = Float64Array.from({ length: COUNT }, (_, i) => i);
  const ramps = Array.from({ length: ranks }, (_, r) => runtime.data(ramp, { rank: r }));
  const token = runtime.data(new Float64Array(COUNT), { name: 'token', rank: 0 });
  let visits = 0;
  const report = await runtime.run((graph) => {
    for (let i = 0; i < rounds * places.length; i++) {
      for (let r = 0; r < ranks; r++, visits++) {
        const device = places[visits % places.length];
        graph.insert(add, { to: token, from: ramps[r], count: COUNT }, { rank: r, device });
      }
    }
  });
  const values = await token.read();
  check(
    values.every((v, i) => v === visits * i),
    () => `tile[1] is ${values[1]}, not ${visits}`,
  );
  closeAll(token, ramps);
  return { problems, report };
}

/** Tasks linked along a random permutation run in its order, wherever they run. */
export async function permutationChain({ runtime, ranks }) {
  const { problems, check } = collector();
  const n = 120;
  const next = random(7);
  const order = Array.from({ length: n }, (_, i) => i);
  for (let i = n - 1; i > 0; i--) {
    const j = Math.floor(next() * (i + 1));
    [order[i], order[j]] = [order[j], order[i]];
  }
  const log = runtime.data(new Float64Array(n + 1), { name: 'log', rank: ranks - 1 });
  const visit = task({
    name: 'visit',
    flows: { log: readWrite('f64') },
    params: { i: 'i32' },
    body: ({ log: l, i }) => {
      l[0] += 1;
      l[l[0]] = i;
    },
  });
  const report = await runtime.run((graph) => {
    for (const i of order) graph.insert(visit, { log, i }, { rank: i % ranks });
  });
  const values = await log.read();
  check(
    order.every((v, i) => values[i + 1] === v),
    () => `order ${values.slice(1, 9)}, not ${order.slice(0, 8)}`,
  );
  closeAll(log);
  return { problems, report };
}

/** Every rank contributes r*10 .. r*10+9; a tree adds them up: 780 for four ranks. */
export async function reduce({ runtime, rank, ranks, gpus }) {
  const { problems, check } = collector();
  const parts = Array.from({ length: ranks }, (_, r) => {
    const values = new Float64Array(COUNT).fill(10 * 10 * r + 45);
    const options = { name: `part-${r}`, rank: r, ...(gpus > 0 ? { device: r % gpus } : {}) };
    return runtime.data(r === rank ? values : new Float64Array(COUNT), options);
  });
  const report = await runtime.run((graph) => {
    for (let step = 1; step < ranks; step *= 2) {
      for (let r = 0; r + step < ranks; r += 2 * step)
        graph.insert(add, { from: parts[r + step], to: parts[r], count: COUNT });
    }
  });
  const values = await parts[0].read();
  const last = ranks * 10 - 1;
  check(allEqual(values, (last * (last + 1)) / 2), () => `the sum is ${values[0]}`);
  if (ranks === 4) check(values[0] === 780, () => `${values[0]}, not 780`);
  closeAll(parts);
  return { problems, report };
}

/** One task writes, five per rank read it, one writes again: every reader sees the version before, round after round. */
export async function writeAfterRead({ runtime, ranks, gpus }) {
  const { problems, check } = collector();
  const rounds = 8;
  const on = (r) => (gpus > 0 ? { rank: r, device: r % gpus } : { rank: r });
  const x = runtime.data('f64', COUNT, { name: 'x', ...on(0) });
  const seen = [];
  for (let r = 0; r < ranks; r++)
    for (let k = 0; k < 5; k++)
      seen.push(
        Array.from({ length: rounds }, (_, i) =>
          runtime.data('f64', COUNT, { name: `seen-${r}-${k}-${i}`, ...on(r) }),
        ),
      );
  const report = await runtime.run((graph) => {
    for (let round = 0; round < rounds; round++) {
      graph.insert(fill, { to: x, count: COUNT, value: round + 1 });
      for (const s of seen) graph.insert(copy, { from: x, to: s[round], bytes: COUNT * 8 });
    }
  });
  for (const s of seen)
    for (let i = 0; i < rounds; i++) {
      const values = await s[i].read();
      check(allEqual(values, i + 1), () => `${s[i].name}: ${values[0]} for version ${i + 1}`);
    }
  closeAll(x, seen);
  return { problems, report };
}

/** Everybody reads everybody's tile of the step before; each checks rank and step. */
export async function allToAll({ runtime, ranks, gpus }) {
  const { problems, check } = collector();
  const steps = 6;
  const on = (r) => (gpus > 0 ? { rank: r, device: r % gpus } : { rank: r });
  const tiles = [0, 1].map((g) =>
    Array.from({ length: ranks }, (_, r) =>
      runtime.data('f64', COUNT, { name: `tile-${g}-${r}`, ...on(r) }),
    ),
  );
  const marks = Array.from({ length: ranks }, (_, r) =>
    runtime.data(new Float64Array(1), { name: `mark-${r}`, rank: r }),
  );
  const flows = { mark: readWrite('f64') };
  for (let r = 0; r < ranks; r++) flows[`in${r}`] = read('f64');
  const look = task({
    name: 'look',
    fetch,
    flows,
    params: { t: 'i32' },
    body: (args) => {
      for (let r = 0; r < ranks; r++)
        check(
          allEqual(args[`in${r}`], args.t * 1000 + r),
          () => `step ${args.t}: ${args[`in${r}`][0]} of ${r}`,
        );
      args.mark[0] += 1;
    },
  });
  const report = await runtime.run((graph) => {
    for (let t = 0; t < steps; t++) {
      for (let r = 0; r < ranks; r++)
        graph.insert(fill, { to: tiles[t & 1][r], count: COUNT, value: t * 1000 + r });
      for (let r = 0; r < ranks; r++) {
        const args = { mark: marks[r], t };
        for (let k = 0; k < ranks; k++) args[`in${k}`] = tiles[t & 1][k];
        graph.insert(look, args);
      }
    }
  });
  for (const mark of marks) {
    const [count] = await mark.read();
    check(count === steps, () => `${mark.name}: ${count} of ${steps} steps`);
  }
  closeAll(tiles, marks);
  return { problems, report };
}

/** Random sums over tiles of all ranks: the serial program's values, every task exactly once. */
export async function randomSums({ runtime, ranks, home }) {
  const { problems, check } = collector();
  const next = random(11);
  const count = 5 * ranks + 3;
  const tiles = Array.from({ length: count }, (_, i) =>
    runtime.data('f64', COUNT, { name: `r${i}`, ...home(i) }),
  );
  const expected = new Float64Array(count);
  const pick = (n) => Math.floor(next() * n);
  let inserted = 0;
  const report = await runtime.run((graph) => {
    for (let i = 0; i < count; i++, inserted++) {
      expected[i] = i;
      graph.insert(fill, { to: tiles[i], count: COUNT, value: i });
    }
    for (let k = 0; k < 300; k++, inserted++) {
      const to = pick(count);
      const from = (to + 1 + pick(count - 1)) % count;
      const what = pick(4);
      const at = what === 3 ? { rank: pick(ranks) } : {};
      if (what === 0) {
        expected[to] = expected[from];
        graph.insert(copy, { to: tiles[to], from: tiles[from], bytes: COUNT * 8 });
      } else if (what === 1) {
        expected[to] = k;
        graph.insert(fill, { to: tiles[to], count: COUNT, value: k });
      } else {
        // Bounded: sums of sums would soon be inexact.
        expected[to] += expected[from];
        graph.insert(add, { to: tiles[to], from: tiles[from], count: COUNT }, at);
        if (expected[to] > 1e12) {
          expected[to] = 1;
          graph.insert(fill, { to: tiles[to], count: COUNT, value: 1 });
          inserted++;
        }
      }
    }
  });
  for (let i = 0; i < count; i++) {
    const values = await tiles[i].read();
    check(allEqual(values, expected[i]), () => `tile ${i}: ${values[0]}, not ${expected[i]}`);
  }
  closeAll(tiles);
  return { problems, report, inserted };
}

/** n tasks release one without data, all on different ranks; A(i) feeds B(2i), B(2i+1), both feed C(i), by control only. */
export async function control({ runtime, ranks }) {
  const { problems, check } = collector();
  const n = 5 * ranks;
  // Written on the rank that runs the task; a task reads only the marks of its own rank.
  const ran = new Set();
  const mark = task({
    name: 'mark',
    flows: {},
    params: { i: 'i32' },
    body: ({ i }) => void ran.add(i),
  });
  const counts = Array.from({ length: ranks }, (_, r) =>
    runtime.data(new Float64Array(4), { name: `counts-${r}`, rank: r }),
  );
  const count = task({
    name: 'count',
    flows: { counts: readWrite('f64') },
    params: { kind: 'i32', needs: 'i32' },
    body: ({ counts: c, kind, needs }) => {
      check(needs < 0 || ran.has(needs), () => `kind ${kind} ran before task ${needs}`);
      c[kind] += 1;
    },
  });
  const spin = task({ name: 'spin', flows: {}, params: { us: 'f64' }, kernel: 'spin' });
  const report = await runtime.run((graph) => {
    for (let i = 0; i < n; i++) {
      const on = (k) => ({ rank: (i + k) % ranks });
      const slow = graph.insert(spin, { us: 100 }, on(0));
      const a = graph.insert(mark, { i }, { ...on(0), after: [slow] });
      const bs = [1, 2].map((k) =>
        graph.insert(
          count,
          { counts: counts[(i + k) % ranks], kind: 1, needs: -1 },
          { after: [a] },
        ),
      );
      // Back on A's rank, after both tasks of B's rank, which follow A: the effects of A must be visible.
      graph.insert(count, { counts: counts[i % ranks], kind: 2, needs: i }, { after: bs });
    }
    const all = Array.from({ length: n }, (_, i) =>
      graph.insert(mark, { i: n + i }, { rank: i % ranks }),
    );
    graph.insert(count, { counts: counts[0], kind: 3, needs: n }, { after: all });
  });
  const totals = new Float64Array(4);
  for (const c of counts) {
    const values = await c.read();
    for (let k = 0; k < 4; k++) totals[k] += values[k];
  }
  check(totals[1] === 2 * n && totals[2] === n && totals[3] === 1, () => `counts ${totals}`);
  closeAll(counts);
  return { problems, report };
}

/** The program awaits values and goes on by them: halve until 1, then count the steps; the other branch never runs. */
export async function choice({ runtime, ranks, home }) {
  const { problems, check } = collector();
  const x = runtime.data(new Float64Array(COUNT).fill(27), { name: 'x', ...home(1) });
  const change = task({
    name: 'change',
    flows: { x: readWrite('f64') },
    params: { odd: 'bool' },
    body: ({ x: v, odd }) => {
      check((v[0] % 2 === 1) === odd, () => `the wrong branch ran for ${v[0]}`);
      for (let i = 0; i < v.length; i++) v[i] = odd ? 3 * v[i] + 1 : v[i] / 2;
    },
  });
  let steps = 0;
  const report = await runtime.run(async (graph) => {
    for (let value = 27; value !== 1; steps++) {
      graph.insert(change, { x, odd: value % 2 === 1 }, { rank: steps % ranks });
      [value] = await x.read();
    }
  });
  check(steps === 111, () => `${steps} steps of the Collatz sequence of 27, not 111`);
  closeAll(x);
  return { problems, report };
}

/** Bodies unfold a tree of tasks and data on their own rank; the sums of the ranks are then added up across ranks. */
export async function unfolding({ runtime, ranks }) {
  const { problems, check } = collector();
  const depth = 6;
  const sums = Array.from({ length: ranks }, (_, r) =>
    runtime.data(new Float64Array(COUNT), { name: `sum-${r}`, rank: r }),
  );
  const others = Array.from({ length: ranks }, (_, r) =>
    runtime.data(new Float64Array(COUNT), { name: `other-${r}`, rank: r }),
  );
  const result = runtime.data(new Float64Array(COUNT), { name: 'result', rank: ranks - 1 });
  const refused = [];
  const grow = (graph, sum, other) => {
    const node = task({
      name: 'node',
      flows: {},
      params: { level: 'i32', rank: 'i32' },
      body: ({ level, rank }) => {
        const one = runtime.data(new Float64Array(COUNT).fill(2 ** level), { name: 'one' });
        graph.insert(add, { to: sum, from: one, count: COUNT });
        one.close();
        if (level < depth)
          for (let k = 0; k < 2; k++) graph.insert(node, { level: level + 1, rank }, { rank });
        if (level > 0 || ranks === 1) return;
        try {
          graph.insert(add, { to: other, from: sum, count: COUNT });
        } catch (error) {
          refused.push(error.code);
        }
      },
    });
    return node;
  };
  await runtime.run((graph) => {
    for (let r = 0; r < ranks; r++) {
      const node = grow(graph, sums[r], others[(r + 1) % ranks]);
      graph.insert(node, { level: 0, rank: r }, { rank: r });
    }
  });
  const report = await runtime.run((graph) => {
    for (const sum of sums) graph.insert(add, { to: result, from: sum, count: COUNT });
  });
  const values = await result.read();
  // Level l has 2^l nodes, each of which adds 2^l.
  const expected = (ranks * (4 ** (depth + 1) - 1)) / 3;
  check(allEqual(values, expected), () => `${values[0]}, not ${expected}`);
  if (ranks > 1) check(refused.join() === 'ERR_INSERT_ALONE', () => `refused: ${refused}`);
  closeAll(sums, others, result);
  return { problems, report };
}
