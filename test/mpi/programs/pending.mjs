// Reads that are left pending while a run fails, and ranks that end at different times. Argument: JSON with `way`.
import { Runtime, readWrite, task, write } from '../../../dist/index.js';
import { report } from './report.mjs';

const { way } = JSON.parse(process.argv[2]);
const runtime = await Runtime.create({ workers: 1, hostMemory: '64MiB' });
const { rank, ranks } = runtime;
const failing = task({
  name: 'failing',
  flows: { x: write('f64') },
  body: () => {
    throw new Error('as asked for');
  },
});
const count = task({
  name: 'count',
  flows: { x: readWrite('f64') },
  body: ({ x }) => {
    for (let i = 0; i < x.length; i++) x[i] += ranks;
  },
});
const data = Array.from({ length: ranks }, (_, owner) =>
  // Every other one travels in its announcement.
  runtime.data(new Float64Array(owner % 2 === 0 ? 65536 : 8).fill(owner), { rank: owner }),
);
const ends = [];
const noted = (promise) =>
  promise.then(
    (values) => ends.push(values.every((value) => value === values[0]) ? 'whole' : 'torn'),
    ({ code }) => ends.push(code),
  );
if (way === 'exit') {
  await runtime.close();
  report(rank, {});
  // The test is about the time for which the other ranks wait for this one.
  if (rank === 0) await new Promise((resolve) => setTimeout(resolve, 3000));
} else if (way === 'beside') {
  // Runs fail while the program goes on: the ranks make the same calls, before or after they learn of the failure.
  const values = [];
  const pending = [];
  const noted = (promise) => {
    const at = pending.length;
    pending.push(
      promise.then(
        (read) => {
          values[at] = read?.[0] ?? 'restored';
        },
        ({ code }) => {
          values[at] = code;
        },
      ),
    );
  };
  for (let round = 0; round < 30; round++) {
    const run = runtime.run((graph) => {
      for (const x of data) graph.insert(count, { x });
      if (rank === round % ranks) throw new Error('as asked for');
    });
    for (let turn = 0; turn < 6; turn++) {
      for (const datum of data) noted(datum.read());
      if (turn === 3) noted(data[round % ranks].restore());
      await new Promise((resolve) => setImmediate(resolve));
    }
    if (round % 3 === 0) await run.done.catch(() => {});
  }
  await Promise.all(pending);
  await runtime.run(() => {}).done.catch(() => {});
  for (const datum of data) await datum.set(new Float64Array(datum.length).fill(19));
  const last = await Promise.all(data.map(async (datum) => (await datum.read())[0]));
  await runtime.close();
  report(rank, { values, last });
} else {
  const reads = [];
  for (let round = 0; round < 20; round++) {
    const failed = round % ranks;
    for (const datum of data) if (way === 'outside') reads.push(noted(datum.read()));
    const run = runtime.run((graph) => {
      for (const datum of data) if (way === 'inside') reads.push(noted(datum.read()));
      if (round % 2 === 0) graph.insert(failing, { x: data[failed] });
      else if (rank === failed) throw new Error('as asked for');
    });
    await run.done.then(
      () => ends.push('no failure'),
      () => {},
    );
    for (const datum of data) await datum.set(new Float64Array(datum.length).fill(round));
  }
  await Promise.all(reads);
  const last = await Promise.all(data.map(async (datum) => (await datum.read())[0]));
  await runtime.close();
  report(rank, { reads: reads.length, ends: [...new Set(ends)].sort(), last });
}
