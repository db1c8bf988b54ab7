// Blocks of a column-major matrix: rows and columns that follow each other.
// Invariant: a region has at least one row and one column.

/** The rows from `row` on and the columns from `column` on. */
export interface Region {
  readonly row: number;
  readonly column: number;
  readonly rows: number;
  readonly columns: number;
}

/** What two regions have in common; undefined if that is nothing. */
export function common(a: Region, b: Region): Region | undefined {
  const row = Math.max(a.row, b.row);
  const column = Math.max(a.column, b.column);
  const rows = Math.min(a.row + a.rows, b.row + b.rows) - row;
  const columns = Math.min(a.column + a.columns, b.column + b.columns) - column;
  return rows > 0 && columns > 0 ? { row, column, rows, columns } : undefined;
}

/** Whether `inner` lies in `outer`. */
export function contains(outer: Region, inner: Region): boolean {
  return (
    outer.row <= inner.row &&
    outer.column <= inner.column &&
    outer.row + outer.rows >= inner.row + inner.rows &&
    outer.column + outer.columns >= inner.column + inner.columns
  );
}

export function isSame(a: Region, b: Region): boolean {
  return contains(a, b) && contains(b, a);
}

/** `region` without `hole`, which lies in it: up to four regions. */
export function without(region: Region, hole: Region): Region[] {
  const { row, column, rows, columns } = region;
  const left = hole.column - column;
  const right = column + columns - (hole.column + hole.columns);
  const above = hole.row - row;
  const below = row + rows - (hole.row + hole.rows);
  const rest: Region[] = [];
  if (left > 0) rest.push({ row, column, rows, columns: left });
  if (right > 0) rest.push({ row, column: column + columns - right, rows, columns: right });
  if (above > 0) rest.push({ row, column: hole.column, rows: above, columns: hole.columns });
  if (below > 0)
    rest.push({
      row: hole.row + hole.rows,
      column: hole.column,
      rows: below,
      columns: hole.columns,
    });
  return rest;
}
