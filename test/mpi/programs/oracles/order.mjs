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
