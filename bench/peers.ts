// Headrace, inserted, recognised and played, beside other task runtimes and MPI by hand: the same stencil and kernel, the same definition of
// METG(50 %) (metg.ts), the same number of workers. In each round every program runs once, in a process of its own, so a
// disturbance of the machine meets all of them.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { commandLine, positive, usageError } from './command-line.js';
import { type BenchEntry, log, median } from './harness.js';
import { efficiencyAt, GRID, metg, type Rated, stepsOf } from './metg.js';
import { undisturbed } from './other-load.js';
import {
  buildPeers,
  checkPeer,
  headracePeer,
  type MissingPeer,
  type Point,
  peerNames,
  type Timed,
  timePeer,
} from './peer-programs.js';

const usage = `usage: npm run bench:peers -- [options]

The stencil of Task Bench with 3 dependencies per task on two workers, by Headrace and by the peers that are installed:
time of an empty task, and METG(50 %) with 16 and with 2 columns. The peers: ${peerNames.join(', ')}.
A peer that is missing is named with its Debian package.

  --rounds N     rounds; the figures are medians of them (5)
  --only LIST    only these peers, with commas between them
  --idle S       waits for other processes, and repeats what they disturb, for up to S seconds per sweep of a program (0)
  --check        compares the results of all peers with expected values, and measures nothing
  --json         a JSON array, not a table
  --help         this text
`;

const WORKERS = 2;
const WIDTHS = [16, 2] as const;
const EMPTY_STEPS = 20_000;
/** Iterations of a sweep: those of metg.ts, and larger ones for programs with more overhead. */
const SWEEP: readonly number[] = [...GRID, 65_536];
/** Programs whose tasks take microseconds run a part of the steps. */
const SLOW: Readonly<Record<string, number>> = { openmp: 0.1, starpu: 0.1 };

type Peer = ReturnType<typeof headracePeer>;
const isMissing = (peer: Peer | MissingPeer): peer is MissingPeer => 'missing' in peer;

const values = commandLine(usage, {
  rounds: { type: 'string', default: '5' },
  only: { type: 'string' },
  idle: { type: 'string' },
  check: { type: 'boolean' },
  json: { type: 'boolean' },
});
const rounds = Math.ceil(positive(usage, 'rounds', values.rounds));
const idle = values.idle === undefined ? 0 : positive(usage, 'idle', values.idle);
const chosen = values.only?.split(',') ?? peerNames;
for (const name of chosen)
  if (!peerNames.includes(name)) usageError(usage, `unknown peer '${name}'`);

/** Steps of a point are even, because a play has two steps per iteration. */
function pointsOf(name: string, width: number, rate: number): Point[] {
  const share = SLOW[name] ?? 1;
  const even = (steps: number): number => 2 * Math.ceil((steps * share) / 2);
  const sweep = SWEEP.map((iterations) => ({
    iterations,
    steps: Math.max(40, even(stepsOf(iterations, width, rate * WORKERS))),
  }));
  return [{ iterations: 0, steps: even(EMPTY_STEPS) }, ...sweep];
}

/** The figures of a program at a width, from one round or from medians of all. */
interface Figures {
  /** ns. */
  readonly empty: number;
  /** us. */
  readonly metg: number;
  /** Share of all cores with tasks of 10 us. */
  readonly share: number;
}

function figuresOf(points: readonly Point[], width: number, all: readonly Timed[][]): Figures {
  const [empty, ...sweep] = points.map(({ iterations, steps }, i) => {
    const tasks = steps * width;
    const seconds = median(all.map((timed) => timed[i].seconds));
    const efficiency = median(
      all.map((timed) => (tasks * iterations) / timed[i].seconds / WORKERS / timed[i].rate),
    );
    const granularity = (seconds * WORKERS) / tasks;
    return { granularity, efficiency: Math.min(1, efficiency) } satisfies Rated;
  });
  return {
    empty: (empty.granularity / WORKERS) * 1e9,
    metg: metg(sweep) * 1e6,
    share: efficiencyAt(sweep, 10e-6),
  };
}

/** All figures of a program, over all rounds and round by round, by width. */
type Results = Map<number, { readonly all: Figures; readonly each: readonly Figures[] }>;

function measure(peers: readonly Peer[]): Map<string, Results> {
  const results = new Map(peers.map(({ name }) => [name, new Map() as Results]));
  const [{ rate }] = timePeer(headracePeer('online'), WORKERS, 16, [{ iterations: 64, steps: 40 }]);
  for (const width of WIDTHS) {
    const timed = new Map(peers.map(({ name }) => [name, [] as Timed[][]]));
    for (let round = 1; round <= rounds; round++) {
      log(`peers: ${width} columns, round ${round} of ${rounds}`);
      for (const peer of peers) {
        const points = pointsOf(peer.name, width, rate);
        const sweep = (): Timed[] => timePeer(peer, WORKERS, width, points);
        timed.get(peer.name)?.push(undisturbed(sweep, idle));
      }
    }
    for (const [name, all] of timed) {
      const points = pointsOf(name, width, rate);
      const each = all.map((one) => figuresOf(points, width, [one]));
      results.get(name)?.set(width, { all: figuresOf(points, width, all), each });
    }
  }
  return results;
}

/** Names and units of the figures in JSON. */
const UNITS = { empty: 'ns/task', metg: 'us', share: 'share' } as const;
type Figure = keyof typeof UNITS;
const FIGURES = Object.keys(UNITS) as Figure[];

function entriesOf(results: ReadonlyMap<string, Results>): BenchEntry[] {
  return [...results].flatMap(([program, widths]) =>
    [...widths].flatMap(([width, { all, each }]) =>
      FIGURES.map((figure): BenchEntry => {
        const values = each.map((one) => one[figure]);
        const [least, most] = [Math.min(...values), Math.max(...values)];
        const params = { program, width, workers: WORKERS, rounds, least, most };
        return {
          name: `peers/${figure}/width-${width}/${program}`,
          value: all[figure],
          unit: UNITS[figure],
          params,
        };
      }),
    ),
  );
}

/** The columns of the table. */
const COLUMNS: readonly { title: string; figure: Figure; width: number; digits: number }[] = [
  { title: 'empty task, 16 columns', figure: 'empty', width: 16, digits: 0 },
  { title: 'METG(50 %), 16 columns', figure: 'metg', width: 16, digits: 2 },
  { title: 'METG(50 %), 2 columns', figure: 'metg', width: 2, digits: 2 },
];

/** Median and range of a figure, and how many times as long as Headrace, played. */
function cell(results: ReadonlyMap<string, Results>, name: string, column: number): string {
  const { figure, width, digits } = COLUMNS[column];
  const text = (value: number): string =>
    Number.isFinite(value) ? value.toFixed(digits) : 'never';
  const of = (program: string): number =>
    results.get(program)?.get(width)?.all[figure] ?? Number.NaN;
  const each =
    results
      .get(name)
      ?.get(width)
      ?.each.map((one) => one[figure]) ?? [];
  const range = `${text(Math.min(...each))} to ${text(Math.max(...each))}`;
  const ratio = of(name) / of('headrace-played');
  const [unit] = UNITS[figure].split('/');
  return `${text(of(name))} ${unit} (${range})${!Number.isFinite(ratio) ? '' : `, ${ratio.toFixed(2)}x`}`;
}

function table(peers: readonly (Peer | MissingPeer)[], results: ReadonlyMap<string, Results>) {
  const rows = [
    ['', ...COLUMNS.map(({ title }) => title)],
    ...peers.map((peer) =>
      isMissing(peer)
        ? [peer.title, `missing; to get it: apt-get install ${peer.missing}`]
        : [peer.title, ...COLUMNS.map((_, column) => cell(results, peer.name, column))],
    ),
  ];
  const widths = [0, 1, 2].map((i) =>
    Math.max(...rows.filter((row) => row.length > 2).map((row) => row[i].length)),
  );
  widths[0] = Math.max(...rows.map(([title]) => title.length));
  for (const row of rows)
    process.stdout.write(
      `${row
        .map((text, i) => text.padEnd(widths[i] ?? 0))
        .join('  ')
        .trimEnd()}\n`,
    );
  process.stdout.write(
    `\nmedians of ${rounds} rounds (their range), and how many times as long as Headrace, played\n`,
  );
}

function check(peers: readonly (Peer | MissingPeer)[]): void {
  const points = [0, 16].flatMap((iterations) =>
    [1, 2, 3, 57, 400].map((steps) => ({ iterations, steps })),
  );
  for (const peer of peers) {
    if (isMissing(peer)) log(`${peer.title}: missing; to get it: apt-get install ${peer.missing}`);
    else {
      for (const width of WIDTHS) checkPeer(peer, WORKERS, width, points);
      log(`${peer.title}: all values as expected`);
    }
  }
}

const folder = mkdtempSync(path.join(tmpdir(), 'headrace-peers-'));
try {
  const peers = buildPeers(chosen, folder);
  if (values.check === true) check(peers);
  else {
    const all = [
      headracePeer('played'),
      headracePeer('recognised'),
      headracePeer('online'),
      ...peers,
    ];
    const results = measure(all.filter((peer): peer is Peer => !isMissing(peer)));
    if (values.json === true)
      process.stdout.write(`${JSON.stringify(entriesOf(results), null, 1)}\n`);
    else table(all, results);
  }
} finally {
  rmSync(folder, { recursive: true });
}
