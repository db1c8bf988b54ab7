// The promise of a class that its functions repeat (`repeats` of a definition): between two tasks whose indices differ in one index only, and
// both of whose values of it are in the promised range, `from` and `to` return the same but for that index in their ends.

import { HeadraceError } from '../../devices/errors.js';
import { shown } from '../checks.js';
import { RETURNED } from './class-functions.js';
import type { EndClass, Indices } from './ends.js';
import { Range } from './range.js';

/** The class that promises. */
interface Promising extends EndClass {
  readonly indexNames: readonly string[];
  /** By position of the index. */
  readonly ranges: readonly ((of: Indices) => Range)[];
}

/** @internal */
export class RepeatPromise {
  /** Name of the index, and its position. */
  readonly index: string;
  readonly position: number;
  private readonly cls: Promising;
  private readonly call: () => Range;
  private known: Range | undefined;

  constructor(cls: Promising, index: string, call: () => Range) {
    this.cls = cls;
    this.index = index;
    this.position = cls.indexNames.indexOf(index);
    this.call = call;
  }

  /** The promised range. @throws HeadraceError `ERR_GRAPH_CLASS`, and what the function throws */
  get range(): Range {
    this.known ??= this.read();
    return this.known;
  }

  private read(): Range {
    const { call, cls, index } = this;
    const range: unknown = call();
    if (RETURNED.steady.fits(range)) return range as Range;
    throw new HeadraceError(
      'ERR_GRAPH_CLASS',
      `\`repeats\` of '${index}' of class '${cls.name}' returns ${shown(range)}; it must be ${RETURNED.steady.words}`,
      { task: cls.name },
    );
  }

  /** The values of the index, where the other ones have those values. */
  valuesAt(of: Indices): Range {
    return this.cls.ranges[this.position](of);
  }

  /** The indices of the task before this one in the promised range; undefined if there is none. */
  before(of: Indices): Indices | undefined {
    const { index, range } = this;
    const value = of[index];
    if (!range.has(value)) return undefined;
    const values = this.valuesAt(of);
    if (!(values instanceof Range)) return undefined;
    const before = value - values.step;
    return range.has(before) && values.has(before) ? { ...of, [index]: before } : undefined;
  }
}
