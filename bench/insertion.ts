// The cost of inserting a tiled Cholesky factorisation on each rank when it leaves out tasks that do not concern it, on 1,
// 2, 4 and 8 ranks: time of the inserting thread on a core, because ranks may outnumber cores. Linux only.
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { cholesky } from '../algorithms/index.js';
import { type Datum, type Graph, Runtime, TiledMatrix } from '../index.js';
import { launchOf } from '../native/launch.js';
import { commandLine, positive } from './command-line.js';
import { underMpirun } from './ranks.js';

const RANKS = [1, 2, 4, 8];
/** Small tiles: their computation costs little beside their insertion. */
const TILE = 4;

const usage = `usage: node dist/bench/insertion.js [options]

What inserting costs a rank, on 1 to 8 ranks; a JSON object for each. It starts itself under mpirun.

  --tiles N             tiles along the diagonal (48)
  --launcher PROGRAM    what starts the ranks (mpirun)
  --help                this text
`;
const values = commandLine(usage, {
  tiles: { type: 'string', default: '48' },
  launcher: { type: 'string' },
});
const tiles = positive(usage, 'tiles', values.tiles);

/** Seconds on a core of the calling thread, which is the process's first. */
function threadSeconds(): number {
  const [nanoseconds] = readFileSync(`/proc/self/task/${process.pid}/schedstat`, 'utf8').split(' ');
  return Number(nanoseconds) / 1e9;
}

async function measure(): Promise<void> {
  const runtime = await Runtime.create({ workers: 1, comm: 'auto', plans: 'off' });
  const figures: Record<string, unknown> = { ranks: runtime.ranks, tiles };
  for (const pruned of [false, true]) {
    const n = tiles * TILE;
    const fill = (a: Float64Array, row: number, column: number, m: number): void => {
      for (let i = 0; i < a.length; i++) {
        const [r, c] = [row + (i % m), column + Math.floor(i / m)];
        a[i] = r === c ? n + 1 : 1 / (1 + Math.abs(r - c));
      }
    };
    let inserted = 0;
    let seconds = 0;
    // The first round warms up.
    for (let round = 0; round < 2; round++) {
      const a = new TiledMatrix(runtime, 'f64', { rows: n, tile: TILE, lower: true }, fill);
      inserted = 0;
      await runtime.run(
        (graph) => {
          const counted = {
            insert: (...args: Parameters<Graph['insert']>) => {
              inserted++;
              return graph.insert(...args);
            },
            skips: (...data: readonly Datum[]) => graph.skips(...data),
            check: (...args: Parameters<Graph['check']>) => graph.check(...args),
          } as unknown as Graph;
          const began = threadSeconds();
          cholesky(counted, a);
          seconds = threadSeconds() - began;
        },
        { pruned },
      );
      a.close();
    }
    figures[pruned ? 'pruned' : 'full'] = { inserted, insertionSeconds: seconds };
  }
  const { rank } = runtime;
  await runtime.close();
  if (rank === 0) process.stdout.write(`${JSON.stringify(figures)}\n`);
}

if (launchOf().size > 1 || process.env['HEADRACE_BENCH_ALONE'] === '1') await measure();
else {
  for (const ranks of RANKS) {
    const file = fileURLToPath(import.meta.url);
    process.exitCode = underMpirun(ranks, [file, '--tiles', String(tiles)], values.launcher, {
      HEADRACE_BENCH_ALONE: '1',
    });
    if (process.exitCode !== 0) break;
  }
}
