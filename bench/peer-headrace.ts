// Headrace's side of the comparison with peers (peers.ts): measures points of the stencil as the peer programs do, and prints the
// same JSON (peers/stencil.h).
import { type Plan, Runtime } from '../index.js';
import { commandLine, positive, usageError } from './command-line.js';
import { insertShape, makeColumns, runShape } from './harness.js';
import { bestRate } from './metg.js';
import type { Point, Timed } from './peer-programs.js';

const usage = `usage: node dist/bench/peer-headrace.js [options]

Seconds of a stencil for each number of kernel iterations per task (0: empty tasks) and of steps, and the best rate of a
core before and after it; a JSON array. npm run bench:peers starts it.

  --points LIST   ITERATIONSxSTEPS, with commas between them (0x20000,128x20000)
  --mode MODE     online: the tasks are inserted; recognised: as by default; played: they are planned before (played)
  --workers N     workers (2)
  --columns N     columns (16)
  --help          this text
`;
const values = commandLine(usage, {
  points: { type: 'string', default: '0x20000,128x20000' },
  mode: { type: 'string', default: 'played' },
  workers: { type: 'string', default: '2' },
  columns: { type: 'string', default: '16' },
});
const { mode } = values;
if (mode !== 'online' && mode !== 'recognised' && mode !== 'played')
  usageError(usage, `unknown mode '${mode}'`);
const workers = positive(usage, 'workers', values.workers);
const width = positive(usage, 'columns', values.columns);
const points = values.points.split(',').map((word): Point => {
  const [, iterations, steps] =
    /^(\d+)x(\d+)$/.exec(word) ?? usageError(usage, `--points: ${word}`);
  return { iterations: Number(iterations), steps: Number(steps) };
});

const runtime = await Runtime.create({ workers, plans: mode === 'recognised' ? 'auto' : 'off' });
const columns = makeColumns(runtime, width, 0);
/** Seconds of a point. */
type Measure = (point: Point) => Promise<number>;
const iterationsOf = ({ iterations }: Point): number | undefined =>
  iterations === 0 ? undefined : iterations;

const online: Measure = (point) =>
  runShape(runtime, columns, 'stencil', point.steps, iterationsOf(point));

/** An iteration of the plan has two steps, because a column has two buffers. */
const played: Measure = async (point) => {
  const plan: Plan = await runtime.plan((graph) =>
    insertShape(graph, columns, 'stencil', 2, iterationsOf(point)),
  );
  // The peers that build their graph before have run it before, too.
  await plan.run({ times: 50 });
  const { seconds } = await plan.run({ times: Math.ceil(point.steps / 2) });
  plan.close();
  return seconds;
};

const measure = mode === 'played' ? played : online;
await runShape(runtime, columns, 'stencil', 5000);
const timed: Timed[] = [];
let before = await bestRate(runtime, columns, workers);
for (const point of points) {
  const seconds = await measure(point);
  const after = await bestRate(runtime, columns, workers);
  timed.push({ seconds, rate: Math.max(before, after) });
  before = after;
}
process.stdout.write(`${JSON.stringify(timed)}\n`);
await runtime.close();
