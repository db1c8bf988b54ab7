// Answers about one task: its six stages, and for each input the source of its copy and the reason for that source.

/** @typedef {import('./model.js').Model} Model */

/** The moments of a task in quanta from the start of the trace. @param {Model} model @param {number} row */
export function taskTimes(model, row) {
  const c = model.columns;
  const start = c.tStart[row];
  const end = start + c.tDur[row];
  return {
    inserted: start - c.tInserted[row],
    ready: start - c.tReady[row],
    alloc: start - c.tAlloc[row],
    stageIn: start - c.tStageIn[row],
    commIn: start - c.tCommIn[row],
    issued: start - c.tIssued[row],
    start,
    end,
    stageOut: end + c.tStageOut[row],
    finalized: end + c.tFinal[row],
  };
}

/**
 * The stages in order, each from when to when (quanta).
 * @param {Model} model @param {number} row @returns {{ name: string, from: number, to: number }[]}
 */
export function stagesOf(model, row) {
  const t = taskTimes(model, row);
  return [
    { name: 'waits for predecessors', from: t.inserted, to: t.ready },
    { name: 'alloc', from: t.ready, to: t.alloc },
    { name: 'stage-in', from: t.alloc, to: t.stageIn },
    { name: 'comm-in', from: t.stageIn, to: t.commIn },
    { name: 'issue', from: t.commIn, to: t.issued },
    { name: 'queue', from: t.issued, to: t.start },
    { name: 'exec', from: t.start, to: t.end },
    { name: 'stage-out', from: t.end, to: t.stageOut },
    { name: 'finalize', from: t.stageOut, to: t.finalized },
  ];
}

/**
 * @typedef {object} Input
 * @property {number} datum
 * @property {string} name
 * @property {number} bytes
 * @property {string} mode
 * @property {string} from source of the copy
 * @property {string} why
 * @property {number} transfer row of the transfer that brought it, or -1
 * @property {number} writer row of the task that wrote this version as far as the trace tells, or -1
 */

const modes = ['', 'read', 'write', 'read-write'];

/** @param {Model} model @param {number} row @returns {Input[]} */
export function inputsOf(model, row) {
  const { start, items } = model.accesses;
  /** @type {Input[]} */
  const inputs = [];
  for (let a = start[row]; a < start[row + 1]; a++) {
    const datum = items[a];
    const mode = model.columns.tAccMode[a];
    inputs.push({
      datum,
      name: model.datumName(datum),
      bytes: model.columns.dBytes[datum],
      mode: modes[mode] ?? '',
      ...origin(model, row, datum, mode),
    });
  }
  return inputs;
}

/** @param {Model} model @param {number} row @param {number} datum @param {number} mode */
function origin(model, row, datum, mode) {
  const { tSpace, xKind, xReason, xSource, xTask, xPeer } = model.columns;
  const space = tSpace[row];
  const here = model.spaceName(space);
  if (mode === 2) {
    return {
      from: 'written here',
      why: 'the task does not read it, so nothing had to move',
      transfer: -1,
      writer: -1,
    };
  }
  const writer = lastWriter(model, row, datum, -1);
  const local = lastWriter(model, row, datum, space);
  const transfer = lastArrival(model, row, datum, space);
  const arrived = transfer < 0 ? -1 : model.transferEnd(transfer);
  if (transfer < 0 || (local >= 0 && model.taskEnd(local) > arrived)) {
    if (local >= 0) {
      return {
        from: `already on ${here}`,
        why: `${model.taskName(local)} wrote it there`,
        transfer: -1,
        writer,
      };
    }
    return {
      from: `already on ${here}`,
      why: 'it was there before the trace began, or was first used there',
      transfer: -1,
      writer,
    };
  }
  const made = xTask[transfer];
  const shared =
    made >= 0 && made !== row
      ? ` It was brought for ${model.taskName(made)} and was still there.`
      : '';
  const kind = model.meta.kinds[xKind[transfer]];
  const reason = model.meta.reasons[xReason[transfer]];
  const from = `${kind} from ${xPeer[transfer] >= 0 ? `rank ${xPeer[transfer]}` : model.spaceName(xSource[transfer])} (${reason})`;
  const by = writer >= 0 ? ` by ${model.taskName(writer)}` : '';
  /** @type {string} */
  let why;
  if (xPeer[transfer] >= 0) {
    why = `the newest version was produced on rank ${xPeer[transfer]}${by}.`;
  } else if (kind === 'd2d') {
    why = `${model.spaceName(xSource[transfer])} had the newest version${by ? `, written${by}` : ''}; a copy between devices avoids the host.`;
  } else if (kind === 'h2d') {
    const out = departure(model, transfer, datum);
    why =
      out >= 0
        ? `host memory had a valid copy since ${model.spaceName(xSource[out])} wrote it back (${model.meta.reasons[xReason[out]]}).`
        : `only host memory had a valid copy${by ? `, written${by}` : ' yet'}.`;
  } else {
    why = `the newest version was on ${model.spaceName(xSource[transfer])}${by ? `, written${by}` : ''}.`;
  }
  return { from, why: why + shared, transfer, writer };
}

/** The last task that wrote a datum before a task started; on one memory space, or anywhere (-1). @param {Model} model @param {number} row @param {number} datum @param {number} space */
function lastWriter(model, row, datum, space) {
  const { tSpace, tStart } = model.columns;
  let best = -1;
  for (const task of model.tasksOfDatum(datum)) {
    if (task === row || (model.accessMode(task, datum) & 2) === 0) continue;
    if (space >= 0 && tSpace[task] !== space) continue;
    const end = model.taskEnd(task);
    if (end <= tStart[row] && (best < 0 || end > model.taskEnd(best))) best = task;
  }
  return best;
}

/** The last transfer that brought a datum to a memory space before a task started. @param {Model} model @param {number} row @param {number} datum @param {number} space */
function lastArrival(model, row, datum, space) {
  const { xDest, tStart } = model.columns;
  let best = -1;
  for (const transfer of model.transfersOfDatum(datum)) {
    if (xDest[transfer] !== space || model.transferEnd(transfer) > tStart[row]) continue;
    if (best < 0 || model.transferEnd(transfer) > model.transferEnd(best)) best = transfer;
  }
  return best;
}

/** The transfer that had brought the datum to the source of this one. @param {Model} model @param {number} transfer @param {number} datum */
function departure(model, transfer, datum) {
  const { xDest, xSource, xStart } = model.columns;
  let best = -1;
  for (const other of model.transfersOfDatum(datum)) {
    if (xDest[other] !== xSource[transfer] || model.transferEnd(other) > xStart[transfer]) continue;
    if (best < 0 || model.transferEnd(other) > model.transferEnd(best)) best = other;
  }
  return best;
}
