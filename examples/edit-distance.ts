// The edit distance of two texts as a parameterised graph: a block of the table of Wagner and Fischer (J. ACM 21, 1974) takes its upper
// edge from the block above and its left edge from the block to the left. A plain loop of the same table is beside it.
// `headrace graph verify` and `headrace graph draw` take this file too: they load it, and call `example`.
import { fileURLToPath } from 'node:url';
import {
  type Datum,
  type ParameterisedGraph,
  parameterised,
  Runtime,
  range,
  readWrite,
  task,
} from 'headrace';

const TILE = 50;

/** One letter of each text: the cell from its neighbours above, to the left and diagonal. */
const cell = (above: number, left: number, diagonal: number, isSame: boolean): number =>
  Math.min(above + 1, left + 1, diagonal + (isSame ? 0 : 1));

interface Table {
  /** Each text in pieces of TILE letters. */
  readonly texts: readonly [readonly string[], readonly string[]];
  /** The row above each column of blocks: TILE + 1 distances, the corner first. */
  readonly rows: readonly Datum<'i32'>[];
  /** The column to the left of each row of blocks: TILE distances. */
  readonly columns: readonly Datum<'i32'>[];
}

/** Turns the upper edge of each block into its lower edge, and the left one into the right one. */
export const editDistance: ParameterisedGraph<Table> = parameterised(
  'edit distance',
  (graph, { texts: [down, across], rows, columns }) => {
    const fill = task({
      name: 'fill',
      flows: { row: readWrite('i32'), column: readWrite('i32') },
      params: { i: 'i32', j: 'i32' },
      body: ({ row, column, i, j }) => {
        for (let y = 0; y < column.length; y++) {
          let diagonal = row[0];
          row[0] = column[y];
          for (let x = 1; x < row.length; x++) {
            const isSame = down[i][y] === across[j][x - 1];
            const value = cell(row[x], row[x - 1], diagonal, isSame);
            diagonal = row[x];
            row[x] = value;
          }
          column[y] = row[row.length - 1];
        }
      },
    });
    const [height, width] = [columns.length, rows.length];
    const { block } = graph.declare({ block: { runs: fill, indices: ['i', 'j'] } });
    graph.define(block, {
      ranges: { i: () => range(0, height), j: () => range(0, width) },
      starts: { i: () => range(0, 1), j: () => range(0, 1) },
      flows: {
        row: {
          from: ({ i, j }) => (i === 0 ? rows[j] : block.row({ i: i - 1, j })),
          to: ({ i, j }) => (i === height - 1 ? rows[j] : block.row({ i: i + 1, j })),
        },
        column: {
          from: ({ i, j }) => (j === 0 ? columns[i] : block.column({ i, j: j - 1 })),
          to: ({ i, j }) => (j === width - 1 ? columns[i] : block.column({ i, j: j + 1 })),
        },
      },
      params: ({ i, j }) => ({ i, j }),
    });
  },
);

/** The edges of the table: as many edits as letters. */
function tableOf(runtime: Runtime, a: string, b: string): Table {
  const pieces = (text: string): string[] =>
    Array.from({ length: Math.ceil(text.length / TILE) }, (_, n) =>
      text.slice(n * TILE, (n + 1) * TILE),
    );
  const texts = [pieces(a), pieces(b)] as const;
  const [columns, rows] = texts.map((parts, isRow) =>
    parts.map((part, n) =>
      runtime.data(
        Int32Array.from({ length: part.length + isRow }, (_, k) => n * TILE + k + 1 - isRow),
        { name: `${isRow === 1 ? 'row' : 'column'} ${n}` },
      ),
    ),
  );
  return { texts, rows, columns };
}

/** A small instance, for `headrace graph`. */
export const example = (runtime: Runtime): Table =>
  tableOf(runtime, 'a'.repeat(2 * TILE), 'b'.repeat(3 * TILE));

async function main(): Promise<void> {
  const letters = (length: number, factor: number): string =>
    Array.from({ length }, (_, k) => 'acgt'[(Math.imul(k * k + 7, factor) >>> 13) % 4]).join('');
  const [a, b] = [letters(430, 0x9e3779b1), letters(520, 0x85ebca6b)];

  await using runtime = await Runtime.create({ workers: 1 });
  const table = tableOf(runtime, a, b);
  const { tasks } = await runtime.run(editDistance, table);
  const last = await table.rows[table.rows.length - 1].read();
  const distance = last[last.length - 1];

  let row = Array.from({ length: b.length + 1 }, (_, x) => x);
  for (let y = 0; y < a.length; y++) {
    const next = [y + 1];
    for (let x = 0; x < b.length; x++) next.push(cell(row[x + 1], next[x], row[x], a[y] === b[x]));
    row = next;
  }
  console.log(`${tasks} tasks, distance ${distance}, by a plain loop ${row[b.length]}`);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await main();
