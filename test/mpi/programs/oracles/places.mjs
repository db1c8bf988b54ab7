// The places of data and their transfers: new tiles, one receive per version, every buffer from every buffer.
import { read, readWrite, task, write } from '../../../../dist/index.js';
import { allEqual, COUNT, closeAll, collector, copy, copyWords, fill } from './world.mjs';

const keep = task({ name: 'keep', flows: { of: readWrite('f64') }, kernel: 'empty' });
const see = task({ name: 'see', flows: { of: read('f64') }, kernel: 'empty' });

/** A datum that exists nowhere is written first at every place of every rank: exact, and nothing moves for it. */
export async function newTile({ runtime, rank, ranks, places }) {
  const { problems, check } = collector();
  let report;
  for (let owner = 0; owner < ranks; owner++) {
    for (const born of places) {
      for (const seen of places) {
        const name = `${owner}: ${born}, ${seen}`;
        const tile = runtime.data('f64', COUNT, { name, rank: owner });
        const there = await runtime.run((graph) => {
          graph.insert(fill, { to: tile, count: COUNT, value: 42 }, { device: born });
          graph.insert(keep, { of: tile }, { device: born });
        });
        const { h2d, d2h, d2d, ipc, direct, staged, inline } = there.bytes;
        const moved = h2d + d2h + d2d + ipc + direct + staged + inline;
        check(moved === 0, () => `${name}: ${moved} bytes moved for a new tile`);
        const next = (owner + 1) % ranks;
        report = await runtime.run((graph) => {
          graph.insert(see, { of: tile }, { device: seen, rank: next });
        });
        const got = report.network === undefined ? 0 : report.network.receivedBytes;
        const expected = ranks > 1 && rank === next ? COUNT * 8 : 0;
        check(got === expected, () => `${name}: ${got} bytes received, not ${expected}`);
        const values = await tile.read();
        check(allEqual(values, 42), () => `${name}: ${values[0]}`);
        closeAll(tile);
      }
    }
  }
  return { problems, report };
}

/** One receive per version and rank, however many want it; the other GPU gets its copy from there. */
export async function oneReceive({ runtime, rank, ranks, gpus, places }) {
  const { problems, check } = collector();
  const rounds = 4;
  const x = runtime.data('f64', COUNT, { name: 'x', rank: 0, ...(gpus > 0 ? { device: 0 } : {}) });
  const report = await runtime.run((graph) => {
    for (let i = 0; i < rounds; i++) {
      graph.insert(fill, { to: x, count: COUNT, value: i });
      for (let r = 0; r < ranks; r++)
        for (let again = 0; again < 3; again++)
          for (const device of [...places].reverse())
            graph.insert(see, { of: x }, { rank: r, device });
    }
  });
  if (ranks > 1) {
    const { receives, receivedBytes, sends } = report.network;
    const expected = rank === 0 ? 0 : rounds;
    check(receives === expected, () => `${receives} receives, not ${expected}`);
    check(receivedBytes === expected * COUNT * 8, () => `${receivedBytes} bytes received`);
    const sent = rank === 0 ? rounds * (ranks - 1) : 0;
    check(sends === sent, () => `${sends} sends, not ${sent}`);
  }
  if (gpus > 1) check(report.bytes.d2d > 0, () => 'no copy between devices');
  closeAll(x);
  return { problems, report };
}

/** A version of one datum reaches a tile on every rank, also when it is overwritten at once. */
export async function broadcast({ runtime, ranks, gpus }) {
  const { problems, check } = collector();
  const on = (r) => (gpus > 0 ? { rank: r, device: r % gpus } : { rank: r });
  const x = runtime.data('f64', COUNT, { name: 'x', ...on(0) });
  const copies = Array.from({ length: ranks }, (_, r) =>
    runtime.data('f64', COUNT, { name: `copy-${r}`, ...on(r) }),
  );
  const report = await runtime.run((graph) => {
    graph.insert(fill, { to: x, count: COUNT, value: 42 });
    for (const to of copies) graph.insert(copy, { from: x, to, bytes: COUNT * 8 });
    graph.insert(fill, { to: x, count: COUNT, value: 43 });
  });
  for (const each of copies) {
    const values = await each.read();
    check(allEqual(values, 42), () => `${each.name}: ${values[0]}`);
  }
  closeAll(x, copies);
  return { problems, report };
}

/** Many tiles through few buffers: each is written on one rank, read on the next, and checked. */
export async function storm({ runtime, ranks, home }) {
  const { problems, check } = collector();
  const count = 120;
  const make = (name, by) =>
    Array.from({ length: count }, (_, i) =>
      runtime.data('f64', COUNT, { name: `${name}${i}`, ...home(i + by) }),
    );
  const tiles = make('t', 0);
  const outs = make('o', 1);
  const report = await runtime.run((graph) => {
    tiles.forEach((to, i) => {
      graph.insert(fill, { to, count: COUNT, value: i + 0.5 });
    });
    tiles.forEach((from, i) => {
      graph.insert(copy, { from, to: outs[i], bytes: COUNT * 8 });
    });
  });
  const values = await Promise.all(outs.map((out) => out.read()));
  values.forEach((v, i) => {
    check(allEqual(v, i + 0.5), () => `tile ${i}: ${v[0]} (${ranks} ranks)`);
  });
  closeAll(tiles, outs);
  return { problems, report };
}

const STEP = 4096;
/** Element i of the output of step s: step and position, so that a wrong value shows its origin. */
const element = (step, i) => step * STEP + (i & (STEP - 1));
const DEAD = -1;

/** What a wrong element is. */
function diagnosis(value, step, i) {
  if (value === DEAD) return 'killed: the source was read after it was overwritten';
  const from = Math.floor(value / STEP);
  if (from >= 0 && from < step && value === element(from, i)) return `stale: it is of step ${from}`;
  return 'garbage';
}

/**
 * copy-cover: private -> A -> B -> private for every ordered pair of buffers (host and GPUs of all ranks), 4 B to 1 MiB.
 * The copy A -> B is made by A's rank, by B's, or by a third one; A is mostly overwritten right behind it.
 */
export async function copyCover({ runtime, ranks, places }) {
  const { problems, check } = collector();
  const produce = task({
    name: 'produce',
    flows: { to: write('i32') },
    params: { step: 'i32' },
    body: ({ to, step }) => {
      for (let i = 0; i < to.length; i++) to[i] = element(step, i);
    },
  });
  const kill = task({
    name: 'kill',
    flows: { to: write('i32') },
    body: ({ to }) => void to.fill(DEAD),
  });
  const verify = task({
    name: 'verify',
    flows: { from: read('i32') },
    params: { step: 'i32', at: 'i32' },
    body: ({ from, step, at }) => {
      const i = from.findIndex((v, k) => v !== element(step, k));
      check(
        i < 0,
        () =>
          `step ${step} on rank ${at}, element ${i} of ${from.length} is ${from[i]}: ${diagnosis(from[i], step, i)}`,
      );
    },
  });
  let step = 0;
  let report;
  for (const exponent of [0, 3, 6, 9, 12, 15, 18]) {
    const length = 2 ** exponent;
    const bytes = 4 * length;
    const buffers = [];
    const own = [];
    const dead = [];
    for (let r = 0; r < ranks; r++) {
      own.push(runtime.data('i32', length, { name: `private of ${r}`, rank: r }));
      dead.push(runtime.data('i32', length, { name: `dead of ${r}`, rank: r }));
      for (const place of places) {
        const datum = runtime.data('i32', length, { name: `${r} ${place}`, rank: r });
        buffers.push({ r, place, datum });
      }
    }
    report = await runtime.run((graph) => {
      for (let r = 0; r < ranks; r++) graph.insert(kill, { to: dead[r] });
      for (const A of buffers) {
        for (const B of buffers) {
          if (A === B) continue;
          step++;
          const by = [A.r, B.r, step % ranks][step % 3];
          graph.insert(produce, { to: own[A.r], step });
          graph.insert(copyWords, { from: own[A.r], to: A.datum, bytes }, { device: A.place });
          graph.insert(
            copyWords,
            { from: A.datum, to: B.datum, bytes },
            { device: B.place, rank: by },
          );
          if ((step * 3) % 7 !== 0)
            graph.insert(
              copyWords,
              { from: dead[A.r], to: A.datum, bytes },
              { device: A.place, rank: A.r },
            );
          const at = (step + 1) % ranks;
          graph.insert(verify, { from: B.datum, step, at }, { rank: at });
        }
      }
    });
    closeAll(
      own,
      dead,
      buffers.map(({ datum }) => datum),
    );
  }
  return { problems, report, steps: step };
}
