// Progress, abort, and the state afterwards: queued tasks are dropped, running ones end, memory returns.
import { HeadraceError, Runtime, readWrite, task } from 'headrace';

const work = task({
  name: 'work',
  flows: { tile: readWrite('f64') },
  params: { microseconds: 'f64' },
  kernel: 'spin',
});

await using runtime = await Runtime.create({ gpus: 1, gpuMemory: '1MiB' });
const tiles = Array.from({ length: 8 }, (_, i) =>
  runtime.data(new Float64Array(1024).fill(i), { name: `tile ${i}` }),
);
const unrelated = runtime.data(Float64Array.of(42));

const controller = new AbortController();
const run = runtime.run(
  (graph) => {
    for (let i = 0; i < 2000; i++)
      graph.insert(work, { tile: tiles[i % tiles.length], microseconds: 500 });
  },
  { signal: controller.signal },
);
run.events.on('progress', ({ completed, inserted }) => {
  console.log(`${completed} of ${inserted} tasks`);
  if (completed > 100) controller.abort(new Error('enough'));
});

try {
  await run;
} catch (error) {
  if (!(error instanceof HeadraceError)) throw error;
  console.log(`${error.name}: ${error.message} (${error.code})`);
}
console.log(`pinned: ${runtime.memory().map((m) => m.pinned)}`);
console.log(`other data can still be read: ${(await unrelated.read())[0]}`);

// The dropped tasks should have changed the tiles, so the tiles have no value now. Restore the value that they have:
await Promise.all(tiles.map((tile) => tile.restore()));
const again = await runtime.run((graph) => {
  for (const tile of tiles) graph.insert(work, { tile, microseconds: 1 });
});
console.log(`and the runtime still works: ${again.tasks} tasks`);
