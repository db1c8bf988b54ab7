// The record of the newest versions of a datum and its parts, against a table of every element.
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { common, contains, type Region, without } from '../../scheduler/program/parts/region.js';
import { Versions } from '../../scheduler/program/parts/versions.js';

interface View {
  readonly region: Region;
  /** Version of each element in the memory of the view, by its place in the whole. */
  readonly has: Int32Array;
}

const SIDE = 6;
const cells = ({ row, column, rows, columns }: Region): number[] =>
  Array.from(
    { length: rows * columns },
    (_, i) => (column + Math.floor(i / rows)) * SIDE + row + (i % rows),
  );

const regions = fc
  .tuple(fc.nat(SIDE - 1), fc.nat(SIDE - 1), fc.nat(100), fc.nat(100))
  .map(([row, column, a, b]) => ({
    row,
    column,
    rows: 1 + (a % (SIDE - row)),
    columns: 1 + (b % (SIDE - column)),
  }));

const programs = fc.record({
  parts: fc.array(regions, { minLength: 1, maxLength: 6 }),
  steps: fc.array(fc.record({ view: fc.nat(6), writes: fc.boolean() }), { maxLength: 40 }),
});

it('a view that has taken over what it lacks has the newest version of every element', () => {
  fc.assert(
    fc.property(programs, ({ parts, steps }) => {
      const newest = new Int32Array(SIDE * SIDE).fill(1);
      const all = { row: 0, column: 0, rows: SIDE, columns: SIDE };
      const whole: View = { region: all, has: newest.slice() };
      const views = [
        whole,
        ...parts.map((region) => ({ region, has: new Int32Array(SIDE * SIDE) })),
      ];
      const versions = new Versions<View>(whole, true);
      for (const [i, step] of steps.entries()) {
        const view = views[step.view % views.length];
        if (step.writes) {
          versions.write(view);
          for (const cell of cells(view.region)) view.has[cell] = newest[cell] = i + 2;
        } else {
          for (const n of versions.missing(view)) {
            expect(contains(view.region, n.region) && contains(n.source.region, n.region)).toBe(
              true,
            );
            if (n.isFirst) view.has.fill(0);
            for (const cell of cells(n.region)) view.has[cell] = n.source.has[cell];
            versions.take(view, n.region, n.piece);
          }
          expect(versions.isBehind(view)).toBe(false);
          for (const cell of cells(view.region)) expect(view.has[cell]).toBe(newest[cell]);
        }
        versions.check();
      }
    }),
  );
});

it('a region without another one is the rest of its elements', () => {
  fc.assert(
    fc.property(regions, regions, (a, b) => {
      const hole = common(a, b);
      if (hole === undefined) return;
      const rest = [hole, ...without(a, hole)].flatMap(cells);
      expect(rest.toSorted((x, y) => x - y)).toEqual(cells(a).toSorted((x, y) => x - y));
    }),
  );
});
