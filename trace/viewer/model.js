// The trace in memory: typed-array columns decoded from the page. Times are quanta of `meta.quantum` nanoseconds from
// the start of the trace. Task and transfer rows are in drawing order: by lane, then by time.

/**
 * @typedef {object} Lane
 * @property {number} rank
 * @property {string} kind
 * @property {string} name
 * @property {number} space
 */

/**
 * @typedef {object} Meta
 * @property {string} program
 * @property {string} started
 * @property {boolean} simulated
 * @property {number} quantum
 * @property {number} span
 * @property {{ rank: number, host: string }[]} ranks
 * @property {Lane[]} lanes
 * @property {{ rank: number, index: number, kind: string, name: string, bytes: number }[]} spaces
 * @property {{ name: string, parameterNames: string[], namedByParameters: boolean }[]} classes
 * @property {string[]} names
 * @property {{ plan: string, first: number, tasks: number, iteration: number }[]} plays
 * @property {string[]} kinds
 * @property {string[]} reasons
 * @property {string[]} releases
 * @property {{ reason: string, title: string, advice: string }[]} idle
 * @property {any} summary
 */

/** Ids of played tasks count from here (trace/format.ts). */
export const FIRST_PLAYED = 0x80000000;

/** @typedef {Record<string, any>} Columns typed arrays by name, see trace/html/payload.ts */

/** @typedef {{ start: Int32Array, items: Int32Array }} Lists */

export class Model {
  /** @param {Meta} meta @param {Columns} columns */
  constructor(meta, columns) {
    this.meta = meta;
    this.columns = columns;
    this.span = Math.max(1, meta.span);
    this.tasks = columns.tStart.length;
    this.transfers = columns.xStart.length;
    /** @type {Lists} */
    this.predecessors = { start: sums(columns.tPredCount), items: columns.tPred };
    /** @type {Lists} */
    this.accesses = { start: sums(columns.tAccCount), items: columns.tAcc };
    /** @type {Lists} */
    this.parameters = { start: sums(columns.tParCount), items: columns.tPar };
    /** @type {Lists | undefined} */
    this.successorLists = undefined;
    /** @type {Map<string, Lists>} */
    this.indexes = new Map();
    /** Position on the critical path by task row, and by transfer row. */
    this.pathOfTask = new Map();
    this.pathOfTransfer = new Map();
    for (let i = 0; i < columns.cRow.length; i++) {
      (columns.cType[i] === 0 ? this.pathOfTask : this.pathOfTransfer).set(columns.cRow[i], i);
    }
  }

  /** Nanoseconds of a time or duration. @param {number} quanta */
  ns(quanta) {
    return quanta * this.meta.quantum;
  }

  /** @param {number} row */
  taskEnd(row) {
    return this.columns.tStart[row] + this.columns.tDur[row];
  }

  /** @param {number} row */
  transferEnd(row) {
    return this.columns.xStart[row] + this.columns.xDur[row];
  }

  /** @param {number} row */
  taskLane(row) {
    return segment(this.columns.tLane, row);
  }

  /** @param {number} row */
  transferLane(row) {
    return segment(this.columns.xLane, row);
  }

  /** @param {number} row */
  className(row) {
    return this.meta.classes[this.columns.tClass[row]]?.name ?? 'task';
  }

  /** @param {number} row */
  taskName(row) {
    const { start, items } = this.parameters;
    const name = this.className(row);
    const named = this.meta.classes[this.columns.tClass[row]]?.namedByParameters !== false;
    if (named && start[row] < start[row + 1]) {
      return `${name}(${items.subarray(start[row], start[row + 1]).join(', ')})`;
    }
    const { accesses, columns } = this;
    for (let a = accesses.start[row]; a < accesses.start[row + 1]; a++) {
      if (columns.tAccMode[a] & 2) {
        return `${name} #${this.taskNumber(row)} ${this.datumName(accesses.items[a])}`;
      }
    }
    return `${name} #${this.taskNumber(row)}`;
  }

  /** Its number; tasks of plays count by themselves, with a `p`. @param {number} row */
  taskNumber(row) {
    const id = this.columns.tId[row];
    return id < FIRST_PLAYED ? String(id) : `p${id - FIRST_PLAYED}`;
  }

  /** The plan and the iteration of a task that was played. @param {number} row @returns {string | undefined} */
  playedAs(row) {
    const play = this.meta.plays[this.columns.tPlay[row]];
    if (play === undefined) return undefined;
    const done = Math.floor((this.columns.tId[row] - play.first) / Math.max(1, play.tasks));
    return `iteration ${play.iteration + done} of plan '${play.plan}'`;
  }

  /** Its parameters with their names, `n = 256`. @param {number} row @returns {string[]} */
  parameterTexts(row) {
    const names = this.meta.classes[this.columns.tClass[row]]?.parameterNames ?? [];
    const { start, items } = this.parameters;
    return [...items.subarray(start[row], start[row + 1])].map((value, i) =>
      names[i] === undefined ? String(value) : `${names[i]} = ${value}`,
    );
  }

  /** @param {number} row */
  datumName(row) {
    if (row < 0) return 'unknown datum';
    const coordinates = [...this.columns.dCoord.subarray(3 * row, 3 * row + 3)].filter(
      (c) => c !== -0x80000000,
    );
    const name = this.meta.names[this.columns.dName[row]];
    return coordinates.length === 0 ? name : `${name}(${coordinates.join(', ')})`;
  }

  /** @param {number} row */
  transferName(row) {
    return `${this.meta.kinds[this.columns.xKind[row]]} ${this.datumName(this.columns.xDatum[row])}`;
  }

  /** @param {number} space */
  spaceName(space) {
    const found = this.meta.spaces[space];
    if (!found) return 'another rank';
    return this.meta.ranks.length > 1 ? `rank ${found.rank} ${found.name}` : found.name;
  }

  /** @param {number} lane */
  laneName(lane) {
    const found = this.meta.lanes[lane];
    if (!found) return 'no lane';
    return this.meta.ranks.length > 1 ? `rank ${found.rank} ${found.name}` : found.name;
  }

  /** Tasks that waited for a task. @param {number} row @returns {Int32Array} */
  successors(row) {
    this.successorLists ??= invert(this.predecessors, this.tasks);
    const { start, items } = this.successorLists;
    return items.subarray(start[row], start[row + 1]);
  }

  /** Transfers made for a task. @param {number} row @returns {Int32Array} */
  transfersOf(row) {
    return this.lookup('task', this.tasks, this.columns.xTask, row);
  }

  /** Transfers of a datum. @param {number} datum @returns {Int32Array} */
  transfersOfDatum(datum) {
    return this.lookup('datum', this.columns.dBytes.length, this.columns.xDatum, datum);
  }

  /** Tasks that use a datum. @param {number} datum @returns {Int32Array} */
  tasksOfDatum(datum) {
    let lists = this.indexes.get('users');
    if (!lists) {
      lists = invert(this.accesses, this.columns.dBytes.length);
      this.indexes.set('users', lists);
    }
    return lists.items.subarray(lists.start[datum], lists.start[datum + 1]);
  }

  /** How a task uses a datum: 0 not, 1 read, 2 write, 3 both. @param {number} row @param {number} datum */
  accessMode(row, datum) {
    const { start, items } = this.accesses;
    for (let a = start[row]; a < start[row + 1]; a++) {
      if (items[a] === datum) return this.columns.tAccMode[a];
    }
    return 0;
  }

  /** @param {string} name @param {number} rows @param {Int32Array} rowOf @param {number} row */
  lookup(name, rows, rowOf, row) {
    let lists = this.indexes.get(name);
    if (!lists) {
      const start = new Int32Array(rows + 1);
      for (let i = 0; i < rowOf.length; i++) if (rowOf[i] >= 0) start[rowOf[i] + 1]++;
      for (let r = 0; r < rows; r++) start[r + 1] += start[r];
      const items = new Int32Array(start[rows]);
      const next = start.slice(0, rows);
      for (let i = 0; i < rowOf.length; i++) if (rowOf[i] >= 0) items[next[rowOf[i]]++] = i;
      lists = { start, items };
      this.indexes.set(name, lists);
    }
    return lists.items.subarray(lists.start[row], lists.start[row + 1]);
  }
}

/** @param {Uint32Array} counts @returns {Int32Array} */
function sums(counts) {
  const start = new Int32Array(counts.length + 1);
  for (let i = 0; i < counts.length; i++) start[i + 1] = start[i] + counts[i];
  return start;
}

/** Lists the other way round: for each item, the rows that have it. @param {Lists} lists @param {number} rows */
function invert(lists, rows) {
  const start = new Int32Array(rows + 1);
  for (const item of lists.items) start[item + 1]++;
  for (let r = 0; r < rows; r++) start[r + 1] += start[r];
  const items = new Int32Array(start[rows]);
  const next = start.slice(0, rows);
  for (let row = 0; row + 1 < lists.start.length; row++) {
    for (let i = lists.start[row]; i < lists.start[row + 1]; i++)
      items[next[lists.items[i]]++] = row;
  }
  return { start, items };
}

/** The segment of offsets a row is in. @param {Uint32Array} offsets @param {number} row */
function segment(offsets, row) {
  let low = 0;
  let high = offsets.length - 1;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (offsets[middle + 1] > row) high = middle;
    else low = middle + 1;
  }
  return low;
}

/** Decodes the page's data. @param {(done: number) => void} progress */
export async function loadModel(progress) {
  const meta = JSON.parse(document.getElementById('meta')?.textContent ?? '{}');
  /** @type {Columns} */
  const columns = {};
  const elements = [...document.querySelectorAll('script.column')];
  for (const [index, element] of elements.entries()) {
    const { name, type, delta } = /** @type {HTMLElement} */ (element).dataset;
    const bytes = await inflate(element.textContent ?? '');
    columns[name ?? ''] = unpack(bytes, type ?? '', delta !== undefined);
    // The text is several times the size of the data.
    element.remove();
    progress((index + 1) / elements.length);
  }
  return new Model(meta, columns);
}

/** @param {string} base64 */
async function inflate(base64) {
  const binary = atob(base64);
  const bytes = new Uint8Array(binary.length);
  for (let i = 0; i < bytes.length; i++) bytes[i] = binary.charCodeAt(i);
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('gzip'));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

/** Byte planes and differences back to values. @param {Uint8Array} planes @param {string} type @param {boolean} delta */
export function unpack(planes, type, delta) {
  const types = { Uint8Array, Uint16Array, Uint32Array, Int32Array, Float64Array };
  const Type = types[/** @type {keyof typeof types} */ (type)];
  const width = Type.BYTES_PER_ELEMENT;
  const length = planes.length / width;
  const values = new Type(length);
  const bytes = new Uint8Array(values.buffer);
  for (let plane = 0; plane < width; plane++) {
    const base = plane * length;
    for (let i = 0, at = plane; i < length; i++, at += width) bytes[at] = planes[base + i];
  }
  if (delta) for (let i = 1; i < length; i++) values[i] += values[i - 1];
  return values;
}
