// Finds, among many regions, those that have elements in common with one of them.
//
// Regions of about the same size, to the power of two that is not smaller, are in one level, and each is in the cell of its first
// element. A cell has the size of the level's largest region, so a region reaches into no more than the next cells. A search looks
// at the cells that it covers and those before them, level by level. There are few levels: a program cuts its data alike.
// Invariant: every member is in exactly one cell, that of its region.
import { common, type Region } from './region.js';

interface Member {
  readonly region: Region;
}

/** Regions of at most `rows` rows and `columns` columns. */
interface Level<T> {
  readonly rows: number;
  readonly columns: number;
  readonly cells: Map<number, Set<T>>;
}

/** Levels by the exponents of their sizes; data have fewer than 2^64 elements. */
const EXPONENTS = 64;

const exponentOf = (count: number): number => Math.ceil(Math.log2(count));

export class RegionIndex<T extends Member> {
  /** Cells per column of cells: more than there are. */
  private readonly stride: number;
  private readonly levels: Map<number, Level<T>> = new Map();

  /** `whole`: all members are in it. */
  constructor(whole: Region) {
    this.stride = whole.rows + 1;
  }

  add(member: T): void {
    const level = this.levelOf(member.region);
    const at = this.cellOf(level, member.region);
    const cell = level.cells.get(at);
    if (cell === undefined) level.cells.set(at, new Set([member]));
    else cell.add(member);
  }

  delete(member: T): void {
    const level = this.levelOf(member.region);
    const at = this.cellOf(level, member.region);
    const cell = level.cells.get(at);
    cell?.delete(member);
    if (cell?.size === 0) level.cells.delete(at);
  }

  private levelOf({ rows, columns }: Region): Level<T> {
    const [r, c] = [exponentOf(rows), exponentOf(columns)];
    const known = this.levels.get(r * EXPONENTS + c);
    if (known !== undefined) return known;
    const made: Level<T> = { rows: 2 ** r, columns: 2 ** c, cells: new Map() };
    this.levels.set(r * EXPONENTS + c, made);
    return made;
  }

  private cellOf({ rows, columns }: Level<T>, { row, column }: Region): number {
    return Math.floor(column / columns) * this.stride + Math.floor(row / rows);
  }

  /** The members that have elements in common with a region, in an order that follows from the calls before. */
  within(region: Region): T[] {
    const found: T[] = [];
    for (const level of this.levels.values())
      if (level.cells.size > 0) this.search(level, region, found);
    return found;
  }

  private search({ rows, columns, cells }: Level<T>, region: Region, found: T[]): void {
    const first = Math.max(0, Math.floor((region.row - rows + 1) / rows));
    const last = Math.floor((region.row + region.rows - 1) / rows);
    const left = Math.max(0, Math.floor((region.column - columns + 1) / columns));
    const right = Math.floor((region.column + region.columns - 1) / columns);
    const take = (cell: Iterable<T>): void => {
      for (const member of cell)
        if (common(member.region, region) !== undefined) found.push(member);
    };
    if ((last - first + 1) * (right - left + 1) > cells.size) {
      for (const cell of cells.values()) take(cell);
      return;
    }
    for (let j = left; j <= right; j++)
      for (let i = first; i <= last; i++) {
        const cell = cells.get(j * this.stride + i);
        if (cell !== undefined) take(cell);
      }
  }
}
