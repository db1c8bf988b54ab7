// Runs every oracle by every way on this number of ranks, and reports each: one launch for all of them.
// Argument: JSON with `gpus`, `ways`, `only` (names of oracles; default all), `fetch` (see world.mjs), `repeat` (how
// often each runs; the last result is reported, or the first with problems), and more options of the runtime.
import { Runtime } from '../../../dist/index.js';
import * as matrices from './oracles/matrices.mjs';
import * as norms from './oracles/norms.mjs';
import * as order from './oracles/order.mjs';
import * as patterns from './oracles/patterns.mjs';
import * as places from './oracles/places.mjs';
import * as reductions from './oracles/reductions.mjs';
import * as solvers from './oracles/solvers.mjs';
import { worldOf } from './oracles/world.mjs';
import { report } from './report.mjs';

const {
  gpus = 0,
  ways = ['auto'],
  only,
  fetch: _,
  repeat = 1,
  ...more
} = JSON.parse(process.argv[2] ?? '{}');
const { TILE, ...tiled } = matrices;
const oracles = Object.entries({
  ...order,
  ...patterns,
  ...places,
  ...reductions,
  ...tiled,
  ...solvers,
  ...norms,
});
const common = {
  workers: 1,
  gpus,
  checked: true,
  gpuMemory: '16MiB',
  hostMemory: '128MiB',
  ...more,
};
/** Device memory of a few tiles: everything else has to leave, and receives mostly find no room. */
const short = (tiles) => ({ gpuMemory: tiles * TILE * TILE * 8 });

async function run(way, variant, options, all) {
  const list = all.filter(([name]) => only === undefined || only.includes(name));
  if (list.length === 0) return;
  const comm = way === 'inline' ? 'auto' : way;
  const inlineBytes = way === 'inline' ? 4096 : 64;
  const runtime = await Runtime.create({ ...common, comm, inlineBytes, ...options });
  const world = worldOf(runtime);
  const done = [];
  for (const [name, oracle] of list) {
    let result;
    try {
      for (let i = 0; i < repeat; i++) {
        result = await oracle(world);
        if (result.problems.length > 0) break;
      }
    } catch (error) {
      result = { problems: [`${error.code}: ${error.message}`] };
    }
    const { report: figures, ...rest } = result;
    const { bytes, network, spills, evictions, tasks } = figures ?? {};
    done.push({ name: name + variant, way, ...rest, bytes, network, spills, evictions, tasks });
  }
  await runtime.close();
  const pinned = runtime.memory().reduce((sum, device) => sum + device.pinned, 0);
  for (const entry of done) report(world.rank, { ...entry, pinned });
}

for (const way of ways) {
  await run(way, '', {}, oracles);
  if (gpus === 0) continue;
  for (const tiles of [3, 5])
    await run(way, `, memory of ${tiles} tiles`, short(tiles), [
      ['cholesky', tiled.cholesky],
      ['gemm', tiled.gemm],
      ['choleskySolve', solvers.choleskySolve],
    ]);
}
