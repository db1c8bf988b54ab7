// The data that tasks of other ranks read as they were before the graph. A rank that looks at its own tasks only does not see those
// readers, so the program says who they are: for each datum the flows that take it, or all ranks.

import { HeadraceError } from '../../devices/errors.js';
import { optionsOf, reading, shown } from '../checks.js';
import { Datum } from '../program/datum.js';
import type { LocalRank } from '../ranks/local-rank.js';
import { AllIndices } from './all-indices.js';
import { checkFunction } from './class-functions.js';
import type { Indices, Targets } from './ends.js';
import { inputAway } from './local-mistakes.js';
import type { LocalSends } from './local-sends.js';
import type { OwnRange, Range } from './range.js';

/** A definition of inputs without the types of its indices. @internal */
export interface LooseInputs {
  readonly indices: readonly string[];
  readonly ranges: Readonly<Record<string, (of: Indices) => Range>>;
  readonly own?: Readonly<Record<string, (of: Indices, rank: number) => OwnRange>>;
  readonly on?: (of: Indices) => Datum | number;
  readonly datum: (of: Indices) => Datum;
  readonly to: (of: Indices) => Targets;
}

const INPUTS: readonly string[] = ['indices', 'ranges', 'own', 'on', 'datum', 'to'];

function indicesOf(of: string, given: unknown): string[] {
  const names = reading('ERR_GRAPH_CLASS', `the indices of ${of}`, () =>
    Array.isArray(given) ? [...(given as unknown[])] : undefined,
  );
  if (names?.every((name) => typeof name === 'string') === true) return names;
  throw new HeadraceError(
    'ERR_GRAPH_CLASS',
    `${of}: indices must be an array of names, not ${shown(given)}`,
  );
}

const NOTHING = { target: (): void => {}, home: (): void => {} };

/** @internal */
export class LocalInputs {
  /** Data of all ranks. */
  readonly shared: Datum[] = [];
  readonly groups: LooseInputs[] = [];

  /** @throws HeadraceError `ERR_GRAPH_CLASS`, `ERR_OPTION` */
  add(definition: LooseInputs): void {
    const name = `inputs ${this.groups.length}`;
    const given = optionsOf(definition, INPUTS, `the definition of ${name}`);
    const indexNames = indicesOf(name, given.indices);
    const owner = { name, indexNames };
    const rangesIn = <T>(part: 'ranges' | 'own'): Record<string, T> => {
      const all = optionsOf(given[part] ?? {}, indexNames, `the ${part} of ${name}`);
      const named = indexNames.filter((index) => part === 'ranges' || all[index] !== undefined);
      return Object.fromEntries(
        named.map((index) => [index, checkFunction<T>(owner, all[index], `${part} of '${index}'`)]),
      );
    };
    this.groups.push({
      indices: indexNames,
      ranges: rangesIn('ranges'),
      own: rangesIn('own'),
      ...(given.on === undefined ? {} : { on: checkFunction(owner, given.on, '`on`') }),
      datum: checkFunction(owner, given.datum, '`datum`'),
      to: checkFunction(owner, given.to, '`to`'),
    });
  }

  /**
   * The rank sends those that it owns, before its first task. `isStraight`: those of certain tasks not along trees.
   * @throws HeadraceError `ERR_GRAPH_LOCAL`, the errors of `Graph.insert`
   */
  send(local: LocalRank, sends: LocalSends, isStraight: boolean): void {
    const { rank } = local;
    for (const datum of this.shared) local.toAll(datum);
    for (const { indices: names, ranges, own, on, datum, to } of this.groups) {
      const mine = names.map((name) => {
        const given = own?.[name];
        return given === undefined ? ranges[name] : (of: Indices) => given(of, rank);
      });
      const all = new AllIndices(names, mine);
      for (let of = all.next(); of !== undefined; of = all.next()) {
        if (rankOf(on, of) !== rank && on !== undefined) continue;
        const input = datum(of);
        if (input.rank !== rank) continue;
        if (!local.holds(input)) throw inputAway(input);
        sends.send(input, to(of), isStraight, NOTHING);
      }
    }
  }

  /** Calls `visit` for every datum that goes to certain tasks. */
  each(visit: (datum: Datum, to: Targets) => void): void {
    for (const { indices: names, ranges, datum, to } of this.groups) {
      const all = new AllIndices(
        names,
        names.map((name) => ranges[name]),
      );
      for (let of = all.next(); of !== undefined; of = all.next()) visit(datum(of), to(of));
    }
  }
}

function rankOf(on: LooseInputs['on'], of: Indices): number | undefined {
  const at = on?.(of);
  return at instanceof Datum ? at.rank : at;
}
