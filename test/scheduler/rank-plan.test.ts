// The plans of several ranks agree without a message: what one sends is what the other receives, in the same order, and each
// version comes to a rank once.

import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Parcel } from '../../stages/parcel.js';
import { AccessMode, NetworkRole } from '../../stages/task-table.js';
import { datumId } from '../support/handles.js';
import { type Passage, type PlannedFlow, PlannedRank } from '../support/planned-ranks.js';

const { read, write, readWrite } = AccessMode;
const NO_TREES = 1000;

function ranksOf(owners: readonly number[], size: number, treeFrom = NO_TREES): PlannedRank[] {
  return Array.from({ length: size }, (_, rank) => new PlannedRank(rank, size, owners, treeFrom));
}
const byName = (a: Passage, b: Passage): number =>
  a.datum - b.datum || a.from - b.from || a.to - b.to || a.sequence - b.sequence;
/** What all ranks have planned since the last look, as sends and as receives. */
function passages(ranks: readonly PlannedRank[]): { sends: Passage[]; receives: Passage[] } {
  const all = ranks.map((each) => each.passages());
  return {
    sends: all.flatMap(({ sends }) => sends).sort(byName),
    receives: all.flatMap(({ receives }) => receives).sort(byName),
  };
}
const uses = (...flows: readonly [number, number][]): PlannedFlow[] =>
  flows.map(([datum, mode]) => ({ datum, mode }));

describe('a task', () => {
  it('belongs to the owner of the first datum that it writes', () => {
    const [rank] = ranksOf([0, 1, 2], 3);
    expect(rank.task(uses([0, read], [2, write], [1, readWrite]))).toBe(2);
    expect(rank.task(uses([1, read], [2, read]))).toBe(1);
    expect(rank.task([])).toBe(0);
  });

  it('receives each datum that it reads once; it receives no datum that is here or that it only overwrites', () => {
    const ranks = ranksOf([0, 1, 2], 3);
    for (const each of ranks) each.task(uses([0, readWrite], [1, read], [1, read], [2, write]));
    const passage = { datum: 1, from: 1, to: 0, sequence: 0 };
    expect(passages(ranks)).toEqual({ sends: [passage], receives: [passage] });
    // The version of datum 2 that rank 0 wrote is not its owner's any more.
    for (const each of ranks) each.task(uses([2, readWrite], [1, read]));
    expect(passages(ranks).receives).toEqual([
      { datum: 1, from: 1, to: 2, sequence: 0 },
      { datum: 2, from: 0, to: 2, sequence: 0 },
    ]);
  });

  it('with pulled inputs opens one group, and closes it when it is inserted', () => {
    const ranks = ranksOf([0, 1, 1, 1], 2);
    const pulled = [1, 2].map((datum) => ({ datum, mode: read, isPulled: true }));
    for (const each of ranks) each.task([...uses([0, readWrite], [3, read]), ...pulled]);
    const [group] = ranks[0].groups;
    expect([ranks[0].groups.length, ranks[0].closed, ranks[1].groups.length]).toEqual([1, 1, 0]);
    expect(group.members.map(({ d }) => d)).toEqual([1, 2]);
    // The group compares them with the live ones.
    const named = [...ranks[0].movements.all()].map(({ isNamed }) => isNamed);
    expect(named).toEqual([false, true, true]);
    expect(group.missing).toBe(2);
    const apart = [...ranks[1].movements.all()].map((each) => [each.d, each.apart.length]);
    expect(apart).toEqual([
      [3, 0],
      [1, 2],
      [2, 2],
    ]);
  });
});

describe('a forward', () => {
  it('knows its receive, also if that is over when its insertion returns', () => {
    const [rank] = ranksOf([0, 1, 1, 1], 2, 1);
    rank.endsReceives = true;
    for (const d of [1, 2, 3]) rank.task(uses([0, readWrite], [d, read]));
    const live = [...rank.movements.all()];
    expect(live.map(({ role }) => role)).toEqual([1, 2, 3].map(() => NetworkRole.forward));
    const receives = live.map(({ receive }) => receive);
    expect(receives.map((each) => each?.role)).toEqual([1, 2, 3].map(() => NetworkRole.receive));
    expect(new Set([...live, ...receives]).size).toBe(6);
    for (const each of receives) expect(each && rank.movements.at(each.index)).not.toBe(each);
  });

  it('has the era of its receive, also if another one begins in the insertion of that', () => {
    const [rank] = ranksOf([0, 1], 2, 1);
    rank.nextEra = 1;
    rank.read(1);
    const live = [...rank.movements.all()];
    expect(live.map(({ role }) => role)).toEqual([NetworkRole.receive, NetworkRole.forward]);
    expect(live.map(({ era }) => era)).toEqual([0, 0]);
    rank.read(1);
    expect([...rank.movements.all()].map(({ era }) => era)).toEqual([0, 0, 1, 1]);
  });
});

describe('a send', () => {
  const wants = (ranks: readonly PlannedRank[], d: number): void => {
    for (const each of ranks) each.task(uses([d, readWrite], [0, read]));
  };
  const sends = ({ inserted }: PlannedRank): number =>
    inserted.filter((role) => role === NetworkRole.send).length;

  it('that has not started takes further destinations of the same version', () => {
    const ranks = ranksOf([0, 1, 2], 3);
    wants(ranks, 1);
    wants(ranks, 2);
    expect(sends(ranks[0])).toBe(1);
    for (const each of ranks) each.task(uses([0, readWrite]));
    wants(ranks, 1);
    expect(sends(ranks[0])).toBe(2);
    const destinations = [...ranks[0].movements.all()].map((each) => each.destinations);
    expect(destinations).toEqual([
      [1, 0, 2, 0],
      [1, 1],
    ]);
  });

  it('keeps the ranks apart that pull', () => {
    const ranks = ranksOf([0, 1, 2], 3);
    wants(ranks, 1);
    for (const each of ranks)
      each.task([...uses([2, readWrite]), { datum: 0, mode: read, isPulled: true }]);
    const [{ destinations, apart }] = ranks[0].movements.all();
    expect([sends(ranks[0]), destinations, apart]).toEqual([1, [1, 0], [2, 0]]);
  });

  it('that has started takes none', () => {
    const ranks = ranksOf([0, 1, 2], 3);
    wants(ranks, 1);
    for (const movement of ranks[0].movements.all()) movement.parcel = {} as Parcel;
    wants(ranks, 2);
    expect(sends(ranks[0])).toBe(2);
  });
});

it('a read that the owner refuses counts as a passage: the next one matches', () => {
  const ranks = ranksOf([0], 3);
  const refused: (readonly number[])[] = [];
  ranks[0].plan.reads.refuse(
    datumId(0),
    0,
    (_gid, destinations) => void refused.push(destinations),
  );
  for (const each of ranks.slice(1)) each.read(0);
  expect(refused).toEqual([
    [1, 0],
    [2, 0],
  ]);
  passages(ranks);
  for (const each of ranks) each.task(uses([0, readWrite]));
  for (const each of ranks) each.read(0);
  const { sends, receives } = passages(ranks);
  expect(sends).toEqual(receives);
  expect(sends.map(({ sequence }) => sequence)).toEqual([1, 1]);
});

// --- Random programs, beside a model that knows where each version is ---------------------------------------------------

const DATA = 5;
const flow = fc.record({
  datum: fc.nat(DATA - 1),
  mode: fc.constantFrom(read, write, readWrite),
  isPulled: fc.boolean(),
});
const step = fc.oneof(
  { weight: 12, arbitrary: fc.record({ task: fc.array(flow, { minLength: 1, maxLength: 4 }) }) },
  { weight: 2, arbitrary: fc.record({ read: fc.nat(DATA - 1) }) },
  { weight: 2, arbitrary: fc.record({ restore: fc.nat(DATA - 1) }) },
  { weight: 1, arbitrary: fc.record({ start: fc.nat() }) },
  { weight: 1, arbitrary: fc.constant({ era: true as const }) },
);

/** Where the latest version of every datum is, and how many passages there were. */
class Model {
  readonly producer: number[];
  readonly have: Set<number>[];
  private readonly owners: readonly number[];
  private counts: Map<string, number> = new Map();
  expected: Passage[] = [];

  constructor(owners: readonly number[]) {
    this.owners = owners;
    this.producer = [...owners];
    this.have = owners.map((owner) => new Set([owner]));
  }

  /** Rank `to` needs the latest version of a datum. */
  needs(datum: number, to: number): void {
    if (this.have[datum].has(to)) return;
    this.have[datum].add(to);
    const from = this.producer[datum];
    const name = `${datum} ${from} ${to}`;
    const sequence = this.counts.get(name) ?? 0;
    this.counts.set(name, sequence + 1);
    this.expected.push({ datum, from, to, sequence });
  }

  writes(datum: number, rank: number): void {
    this.producer[datum] = rank;
    this.have[datum] = new Set([rank]);
  }

  task(flows: readonly PlannedFlow[]): number {
    const first = flows.find(({ mode }) => mode !== read) ?? flows[0];
    const rank = this.owners[first.datum];
    for (const { datum, mode } of flows) if (mode !== write) this.needs(datum, rank);
    for (const { datum, mode } of flows) if (mode !== read) this.writes(datum, rank);
    return rank;
  }

  era(): void {
    this.counts = new Map();
    this.owners.forEach((owner, d) => {
      this.writes(d, owner);
    });
  }
}

it('the n-th send of a datum matches the n-th receive, and each version comes to a rank once', () => {
  const owners = fc.array(fc.nat(), { minLength: DATA, maxLength: DATA });
  const program = fc.array(step, { maxLength: 40, size: 'max' });
  const size = fc.integer({ min: 2, max: 4 });
  fc.assert(
    fc.property(size, owners, fc.boolean(), program, (size, ownedBy, hasTrees, steps) => {
      const owned = ownedBy.map((owner) => owner % size);
      const ranks = ranksOf(owned, size, hasTrees ? 1 : NO_TREES);
      const model = new Model(owned);
      let era = 0;
      for (const each of steps) {
        if ('task' in each) {
          const target = model.task(each.task);
          for (const rank of ranks) expect(rank.task(each.task)).toBe(target);
        } else if ('read' in each) {
          for (let to = 0; to < size; to++) model.needs(each.read, to);
          for (const rank of ranks) rank.read(each.read);
        } else if ('restore' in each) {
          model.needs(each.restore, owned[each.restore]);
          model.writes(each.restore, owned[each.restore]);
          for (const rank of ranks) rank.restore(each.restore);
        } else if ('start' in each) {
          for (const movement of ranks[each.start % size].movements.all())
            movement.parcel = {} as Parcel;
        } else {
          model.era();
          era++;
          for (const rank of ranks) rank.beginEra(era);
        }
        const { sends, receives } = passages(ranks);
        expect(receives).toEqual(model.expected.sort(byName));
        expect(sends).toEqual(receives);
        model.expected = [];
        for (const rank of ranks) {
          const { have, producer } = rank.plan.data;
          for (let d = 0; d < DATA; d++) {
            const isHere = producer[d] === rank.rank || have[d] === 1;
            expect(isHere).toBe(model.have[d].has(rank.rank));
          }
        }
      }
      for (const a of ranks) {
        for (const b of ranks) expect(a.sentTo[b.rank]).toBe(b.expectedFrom[a.rank]);
        const count = (role: number): number => a.inserted.filter((each) => each === role).length;
        const pulled = a.groups.reduce((sum, { members }) => sum + members.length, 0);
        expect(count(NetworkRole.receive)).toBe(a.plan.figures.receives);
        expect(count(NetworkRole.forward)).toBe(hasTrees ? a.plan.figures.receives - pulled : 0);
        expect(a.closed).toBe(a.groups.length);
      }
    }),
  );
});
