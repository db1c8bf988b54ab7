// Failures that make a process or its GPU unusable, one per process: node failure.mjs <what> <gpus>. Prints one JSON
// line with the errors that the program got; in every case it ends by itself.
import { Runtime, read, readWrite, task, write } from '../../../dist/index.js';

const [what, gpus] = [process.argv[2], Number(process.argv[3])];
const options = { driver: 'cuda', gpus, gpuMemory: '64MiB', hostMemory: '64MiB', workers: 1 };
const illegal = task({ name: 'illegal', flows: {}, gpuKernel: 'illegal_address' });
const spin = task({
  name: 'spin',
  flows: { of: readWrite('f64') },
  params: { microseconds: 'f64' },
  kernel: 'spin',
});
const fill = task({
  name: 'fill',
  flows: { to: write('f64') },
  params: { count: 'i32', value: 'f64' },
  kernel: 'fill_f64',
});
const see = task({ name: 'see', flows: { of: read('f64') }, body: () => {} });

const seen = {};
const outcome = (promise) =>
  promise.then(
    () => 'ok',
    (error) => {
      seen.message ??= error.message;
      return error.code ?? String(error);
    },
  );

if (what === 'out-of-memory') {
  seen.open = await outcome(Runtime.create({ ...options, gpuMemory: '1000GiB' }));
  const runtime = await Runtime.create(options);
  const giant = runtime.data('f64', 2 ** 24);
  seen.giant = await outcome(
    Promise.resolve().then(() =>
      runtime.run((graph) => void graph.insert(fill, { to: giant, count: 2 ** 24, value: 1 })),
    ),
  );
  const small = runtime.data('f64', 8);
  await runtime.run((graph) => void graph.insert(fill, { to: small, count: 8, value: 7 }));
  seen.after = (await small.read())[7];
  await runtime.close();
} else if (what === 'illegal-address') {
  const runtime = await Runtime.create(options);
  const host = runtime.data(new Float64Array(8).fill(3));
  const device = runtime.data('f64', 8);
  await runtime.run((graph) => void graph.insert(fill, { to: device, count: 8, value: 1 }));
  seen.run = await outcome(
    runtime.run((graph) => {
      graph.insert(illegal, {}, { device: 0 });
      for (let i = 0; i < 100; i++) {
        graph.insert(fill, { to: device, count: 8, value: i }, { device: i % gpus });
        graph.insert(see, { of: device });
      }
    }),
  );
  seen.host = (await host.read())[0];
  seen.next = await outcome(
    runtime.run(
      (graph) => void graph.insert(fill, { to: device, count: 8, value: 1 }, { device: 0 }),
    ),
  );
  await runtime.close();
} else if (what === 'teardown') {
  for (let round = 0; round < 3; round++) {
    const runtime = await Runtime.create(options);
    const data = Array.from({ length: 8 }, () => runtime.data(new Float64Array(1024)));
    const abort = new AbortController();
    const run = runtime.run(
      (graph) => {
        for (let i = 0; i < 2000; i++)
          graph.insert(spin, { of: data[i % 8], microseconds: 200 }, { device: i % gpus });
      },
      { signal: abort.signal },
    );
    const ended = outcome(run);
    abort.abort();
    seen.aborted = await ended;
    await runtime.close();
  }
} else if (what === 'exit') {
  // Nobody closes anything: the process ends in the middle of its work.
  const runtime = await Runtime.create(options);
  const datum = runtime.data(new Float64Array(1024));
  runtime.run((graph) => {
    for (let i = 0; i < 2000; i++)
      graph.insert(spin, { of: datum, microseconds: 200 }, { device: 0 });
  });
  console.log(JSON.stringify({ left: true }));
  process.exit(0);
}
console.log(JSON.stringify(seen));
