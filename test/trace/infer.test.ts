// Dependencies inferred from accesses: by hand for each kind, and against a brute-force reference.
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { group } from '../../trace/columns.js';
import { AccessMode } from '../../trace/format.js';
import { inferDependencies } from '../../trace/infer.js';
import { programOrder } from '../../trace/program-order.js';

const { read, write, readWrite } = AccessMode;

/** Edges 'successor<predecessor' of tasks given as lists of [datum, mode], ids in order. */
function edges(
  tasks: readonly (readonly (readonly [number, number])[])[],
  ids?: readonly number[],
): string[] {
  const rows = tasks.flatMap((list, row) => list.map(() => row));
  const items = tasks.flatMap((list) => list.map(([d]) => d));
  const { start, items: grouped, origin } = group(tasks.length, rows, items);
  const modes = tasks.flatMap((list) => list.map(([, mode]) => mode));
  const columns = {
    count: tasks.length,
    id: Uint32Array.from(ids ?? tasks.map((_, i) => i + 1)),
    rank: new Uint16Array(tasks.length),
    play: new Int32Array(tasks.length).fill(-1),
  };
  const { successor, predecessor } = inferDependencies(
    {
      ...columns,
      accesses: { start, items: grouped },
      accessModes: Uint8Array.from(origin, (i) => modes[i]),
    },
    programOrder(columns, { before: new Uint32Array(0) }),
    10,
    () => true,
  );
  return Array.from(successor, (s, i) => `${s}<${predecessor[i]}`).sort();
}

describe('dependencies inferred from accesses', () => {
  test('a reader follows the writer', () => {
    expect(edges([[[0, write]], [[0, read]], [[0, read]]])).toEqual(['1<0', '2<0']);
  });
  test('a writer follows the readers since, and only them when it does not read', () => {
    expect(edges([[[0, write]], [[0, read]], [[0, write]]])).toEqual(['1<0', '2<1']);
  });
  test('an update follows the writer as well', () => {
    expect(edges([[[0, write]], [[0, read]], [[0, readWrite]]])).toEqual(['1<0', '2<0', '2<1']);
  });
  test('program order is that of ids, not of rows', () => {
    expect(edges([[[0, read]], [[0, write]]], [7, 3])).toEqual(['0<1']);
  });
  test('one edge per pair, however many data lead to it', () => {
    expect(
      edges([
        [
          [0, write],
          [1, write],
        ],
        [
          [0, read],
          [1, read],
        ],
      ]),
    ).toEqual(['1<0']);
  });

  test('random programs: every conflicting pair is ordered by a path, every edge joins a conflicting pair', () => {
    const access = fc.tuple(fc.nat(4), fc.constantFrom(read, write, readWrite));
    const program = fc.array(fc.uniqueArray(access, { maxLength: 4, selector: ([d]) => d }), {
      maxLength: 25,
    });
    fc.assert(
      fc.property(program, (tasks) => {
        const n = tasks.length;
        const reach = Array.from({ length: n }, () => new Set<number>());
        const conflict = (a: number, b: number): boolean =>
          tasks[a].some(([d, m]) =>
            tasks[b].some(([e, k]) => d === e && (m !== read || k !== read)),
          );
        for (const edge of edges(tasks)) {
          const [s, p] = edge.split('<').map(Number);
          expect(p).toBeLessThan(s);
          expect(conflict(s, p)).toBe(true);
          reach[s].add(p);
        }
        for (let s = 0; s < n; s++)
          for (const p of [...reach[s]]) for (const q of reach[p]) reach[s].add(q);
        for (let s = 0; s < n; s++)
          for (let p = 0; p < s; p++) if (conflict(s, p)) expect(reach[s].has(p)).toBe(true);
      }),
      { numRuns: 300 },
    );
  });
});
