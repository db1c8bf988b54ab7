// The index of regions, against a list of them.
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { common, type Region } from '../../scheduler/program/parts/region.js';
import { RegionIndex } from '../../scheduler/program/parts/region-index.js';

const [ROWS, COLUMNS] = [70, 9];
const regions = fc
  .tuple(fc.nat(ROWS - 1), fc.nat(COLUMNS - 1), fc.nat(ROWS), fc.nat(COLUMNS))
  .map(([row, column, a, b]) => ({
    ...{ row, column },
    rows: 1 + (a % (ROWS - row)),
    columns: 1 + (b % (COLUMNS - column)),
  }));
const steps = fc.array(
  fc.tuple(fc.constantFrom('add', 'delete', 'find', 'find'), regions, fc.nat()),
  {
    maxLength: 200,
  },
);

it('finds the regions that have elements in common with another one, and no others', () => {
  fc.assert(
    fc.property(steps, (all) => {
      const index = new RegionIndex({ row: 0, column: 0, rows: ROWS, columns: COLUMNS });
      const members: { readonly region: Region }[] = [];
      for (const [kind, region, n] of all) {
        if (kind === 'add') {
          const member = { region };
          members.push(member);
          index.add(member);
        } else if (kind === 'delete' && members.length > 0) {
          const [member] = members.splice(n % members.length, 1);
          index.delete(member);
        } else {
          const expected = members.filter((each) => common(each.region, region) !== undefined);
          const found = index.within(region);
          expect(found).toHaveLength(expected.length);
          expect(new Set(found)).toEqual(new Set(expected));
        }
      }
    }),
  );
});
