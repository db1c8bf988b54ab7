// The table at the end of scripts/gpu-bench.sh: each figure of Headrace beside the peer that solved the same problem on
// as many GPUs in the same run, and the ratio of the two.
//
// usage: node dist/bench/gpu-table.js FILE     lines of JSON arrays of entries, or `failed: COMMAND`
import { readFileSync } from 'node:fs';
import type { BenchEntry } from './harness.js';

/** One row: a figure, and the peer's if there is one. */
interface Compared {
  readonly entry: BenchEntry;
  readonly peer: BenchEntry | undefined;
}

/** Peers by figure: the memory tells in-core from out-of-core. */
function peerNames(entry: BenchEntry): readonly string[] {
  const outOfCore = String(entry.params['memory']).endsWith('MiB');
  if (entry.name === 'gpu/cholesky/lists') return ['peer/tiles-streams/cholesky'];
  if (entry.name === 'gpu/cholesky/graph') return ['peer/tiles-graph/cholesky'];
  if (entry.name === 'gpu/cholesky')
    return outOfCore ? [] : ['peer/cusolver/cholesky', 'peer/cusolvermg/cholesky'];
  return outOfCore ? ['peer/cublasxt/gemm-host'] : ['peer/cublas/gemm'];
}

/** Pairs every figure of Headrace with the peer of the same size and number of GPUs. */
export function compare(entries: readonly BenchEntry[]): Compared[] {
  const isPeer = (entry: BenchEntry): boolean => entry.name.startsWith('peer/');
  return entries
    .filter((entry) => !isPeer(entry))
    .map((entry) => ({
      entry,
      peer: entries.find(
        (other) =>
          peerNames(entry).includes(other.name) &&
          other.params['n'] === entry.params['n'] &&
          (!other.name.startsWith('peer/tiles') || other.params['tile'] === entry.params['tile']) &&
          other.params['gpus'] === entry.params['gpus'],
      ),
    }));
}

/** The file's lines: entries, and the commands that failed. */
export function parseEntries(text: string): { entries: BenchEntry[]; failed: string[] } {
  const entries: BenchEntry[] = [];
  const failed: string[] = [];
  for (const line of text.split('\n')) {
    if (line.startsWith('failed: ')) failed.push(line.slice('failed: '.length));
    else if (line.startsWith('[')) entries.push(...(JSON.parse(line) as BenchEntry[]));
  }
  return { entries, failed };
}

/** The table as text, a row per figure. */
export function tableText(rows: readonly Compared[]): string {
  const cells = rows.map(({ entry, peer }) => {
    const { gpus, n, tile, memory } = entry.params;
    return [
      `${entry.name.replace('gpu/', '')} n=${n} tile=${tile} memory=${memory} gpus=${gpus}`,
      `${entry.value.toFixed(1)} ${entry.unit}`,
      peer === undefined
        ? 'no peer in this run'
        : `${peer.name.split('/')[1]} ${peer.value.toFixed(1)} ${peer.unit}`,
      peer === undefined ? '' : `ratio ${(entry.value / peer.value).toFixed(3)}`,
    ];
  });
  const width = (column: number): number => Math.max(...cells.map((row) => row[column].length));
  return cells
    .map((row) =>
      row
        .map((cell, i) => cell.padEnd(width(i)))
        .join('  ')
        .trimEnd(),
    )
    .join('\n');
}

if (process.argv[1]?.endsWith('gpu-table.js') === true) {
  const file = process.argv[2];
  if (file === undefined || file === '--help' || file === '-h') {
    process.stdout.write('usage: node dist/bench/gpu-table.js FILE\n');
    process.exit(file === undefined ? 2 : 0);
  }
  if (file.startsWith('-')) {
    process.stderr.write(`unknown option ${file}\n`);
    process.exit(2);
  }
  const { entries, failed } = parseEntries(readFileSync(file, 'utf8'));
  if (entries.length > 0) process.stdout.write(`${tableText(compare(entries))}\n`);
  for (const command of failed) process.stdout.write(`failed: ${command}\n`);
}
