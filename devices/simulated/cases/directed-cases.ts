// Cases made by hand, for situations that random ones hardly ever reach.
import type { CaseNetwork, SimulatedCase } from './case.js';
import type { CaseFlow, CaseStep, CaseTask } from './program.js';

const MILLISECOND = 1000;
/** Bytes of a unit of memory. */
const UNIT = 512;
/** Rows of the window; insertion waits when it needs the row of a slow task again. */
const WINDOW = 32;

const network: CaseNetwork = {
  comm: 'direct',
  flush: 'auto',
  inlineBytes: 0,
  treeFrom: 4,
  ranksPerHost: 1,
  room: 1000,
  lanes: 4,
  ordering: 'owner',
  faults: [],
};

/** A machine without an adversary: only the program decides. */
const calm: Omit<SimulatedCase, 'data' | 'tasks'> = {
  seed: 0,
  ranks: 2,
  network,
  gpus: 1,
  gpuUnits: 16,
  hostUnits: 100,
  shortOfHost: false,
  workers: 2,
  streams: 1,
  peers: true,
  window: WINDOW,
  runAhead: 16,
  smallRings: false,
  tooLarge: false,
  checked: false,
  reads: [],
  faults: [],
  adversary: { seed: 1, spread: 0, holdBack: 0, stall: 0, stallNs: 0, spurious: 0 },
};

const onGpu = (...flows: CaseFlow[]): CaseTask => ({ flows, body: 'kernel', micros: 1 });

const onHost = (rank: number, micros: number, ...flows: CaseFlow[]): CaseTask => ({
  flows,
  body: 'host',
  micros,
  rank,
});

/** A short task that pulls what it reads. */
const pulling = (rank: number, ...flows: CaseFlow[]): CaseTask => ({
  ...onHost(rank, 1, ...flows),
  pulls: true,
});

/**
 * Rank 0 has 16 units of GPU memory and offers the second version of `d` from the middle of them. Rank 1 takes it only
 * after a task that also reads `e`, which rank 0 computes after the slow `h` has arrived. Meanwhile, with the offer made,
 * the program inserts a task that needs 10 units in one piece. If it held the ticket, `e` would never get its room.
 */
function offerInTheWay(): SimulatedCase {
  const [below, d, h, e, large, out, chain] = [0, 1, 2, 3, 4, 5, 6];
  const slow = Array.from({ length: 8 }, () => onHost(0, MILLISECOND, [chain, 3]));
  const program = [
    onGpu([below, 2]),
    onGpu([d, 2]),
    onHost(1, 20 * MILLISECOND, [h, 2]),
    onGpu([h, 1], [e, 2]),
    onHost(1, 1, [d, 1], [e, 1], [out, 2]),
    onGpu([d, 2]),
    onHost(1, 1, [d, 1]),
  ];
  // The window is full before the last task is inserted. The task so waits for some of the slow ones: time for the offer.
  const padding = Array.from({ length: WINDOW / 2 }, () => onHost(0, 1, [chain, 3]));
  const units = [7, 1, 1, 1, 10, 1, 1];
  const data = units.map((n, i) => ({
    units: n,
    initial: i === chain,
    owner: i === h || i === out ? 1 : 0,
  }));
  return { ...calm, data, tasks: [...slow, ...program, ...padding, onGpu([large, 2])] };
}

/**
 * Rank 0 has 32 units of GPU memory. Three changed data of one unit lie so that no 8 units are left in one piece. A task that waits for room
 * behind slow kernels needs that much, and writes `e`, of which rank 1 makes `d`. The receive of `d` has its memory before. If the task
 * waited for the end of that receive, instead of moving the changed data away, both would wait for ever.
 */
function aheadInTheWay(): SimulatedCase {
  const [a, x, b, y, c, z, slow, large, e, d, out, sum] = Array.from({ length: 12 }, (_, i) => i);
  // The window is full of them before the last task is inserted. Then the data of seven units are on the host as well.
  const kernels = Array.from({ length: WINDOW + 8 }, () => ({
    ...onGpu([slow, 3]),
    micros: MILLISECOND,
  }));
  const units = [7, 1, 7, 1, 7, 1, 1, 8, 1, 1, 1, 1];
  return {
    ...calm,
    gpuUnits: 32,
    data: units.map((n, i) => ({ units: n, initial: i === slow, owner: i === d ? 1 : 0 })),
    tasks: [
      ...[a, x, b, y, c, z].map((each) => onGpu([each, 2])),
      onHost(0, 1, [a, 1], [b, 1], [c, 1], [sum, 2]),
      ...kernels,
      onGpu([slow, 1], [large, 2], [e, 2]),
      onHost(1, 1, [e, 1], [d, 2]),
      onGpu([d, 1], [out, 2]),
    ],
    reads: [out],
  };
}

/** Rank 1 is lost while its input, too large to be offered from the GPU, is under way to the host of rank 0. */
function lostBeforeOffer(): SimulatedCase {
  const [d] = [0];
  return {
    ...calm,
    network: {
      ...network,
      faults: [{ kind: 'peerLost', rank: 1, ns: 10_000 }],
    },
    data: [{ units: 8, initial: false, owner: 0 }],
    tasks: [onGpu([d, 2])],
    reads: [d],
  };
}

/** The network's writes to a GPU are ordered for no reader; rank 1 reads on its GPU the data of rank 0, in batches. */
export function received(
  faults: CaseNetwork['faults'],
  body: 'kernel' | 'host' = 'kernel',
): SimulatedCase {
  const n = 12;
  const tasks: CaseTask[] = [];
  // The last datum is written so late that all others have arrived, and been flushed, before.
  for (let d = 0; d < n; d++) tasks.push({ ...onGpu([d, 2]), micros: d === n - 1 ? 1000 : 1 });
  for (let d = 0; d < n; d++) tasks.push({ flows: [[d, 1]], body, micros: 1, rank: 1 });
  return {
    ...calm,
    gpuUnits: 100,
    window: 64,
    network: { ...network, ordering: 'none', faults },
    // The network delays news, so that several receives end in one poll.
    adversary: { ...calm.adversary, spread: 4, holdBack: 0.8 },
    data: Array.from({ length: n }, () => ({ units: 1, initial: false, owner: 0 })),
    tasks,
  };
}

/** Rank 1 reads every version of one datum of rank 0's GPU through the same mapping. */
function mappedAgain(): SimulatedCase {
  const tasks: CaseTask[] = [];
  for (let version = 0; version < 50; version++)
    tasks.push({ ...onGpu([0, 2]), micros: 20 }, onHost(1, 1, [0, 1]));
  return {
    ...calm,
    window: 256,
    network: { ...network, comm: 'auto', ranksPerHost: 2 },
    data: [{ units: 1, initial: false, owner: 0 }],
    tasks,
  };
}

/** Both GPUs of rank 0 have a copy of `d`, a long kernel, and a task in line that needs more than the kernel leaves. */
function bothShort(): SimulatedCase {
  const [d, slow0, slow1, large0, large1] = [0, 1, 2, 3, 4];
  const on = (device: number, micros: number, ...flows: CaseFlow[]): CaseTask => ({
    ...onGpu(...flows),
    device,
    micros,
  });
  return {
    ...calm,
    gpus: 2,
    gpuUnits: 4,
    data: [1, 2, 2, 4, 4].map((units) => ({ units, initial: false, owner: 0 })),
    tasks: [
      on(0, 1, [d, 2]),
      on(1, 1, [d, 1]),
      on(0, MILLISECOND, [slow0, 2]),
      on(1, MILLISECOND, [slow1, 2]),
      on(0, 1, [large0, 2]),
      on(1, 1, [large1, 2]),
    ],
  };
}

/**
 * A run is cancelled on rank 0 after its tasks are over on rank 1, which learns of it late. Rank 1 begins the next
 * run before the failed one is settled there, and sends nothing of `d`, because rank 0 has had it from rank 1 before.
 */
function lateNews(): SimulatedCase {
  const [d, out] = [0, 1];
  const first: CaseStep[] = [
    ['open', 0],
    ['insert', 0, 0],
    ['insert', 0, 1],
    ['end', 0],
    ['await'],
  ];
  const cancelled: CaseStep[] = [
    ['open', 1],
    ['cancel', 1, 0],
    ['end', 1],
    ['pass', 3],
  ];
  const next: CaseStep[] = [['open', 2], ['insert', 2, 2], ['end', 2], ['await']];
  return {
    ...calm,
    gpus: 0,
    adversary: { ...calm.adversary, seed: 1, spread: 8, holdBack: 0.8 },
    data: [
      { units: 1, initial: false, owner: 1 },
      { units: 1, initial: true, owner: 0 },
    ],
    tasks: [onHost(1, 1, [d, 2]), onHost(0, 1, [d, 1], [out, 3]), onHost(0, 1, [d, 1], [out, 3])],
    steps: [...first, ...cancelled, ...next],
  };
}

/**
 * Rank 2 reads a datum that rank 1 announces late. A run that fails meanwhile is settled there before, and its settlement
 * finds the read without an announcement.
 */
function readLeftPending(): SimulatedCase {
  const [d, e] = [0, 1];
  return {
    ...calm,
    ranks: 3,
    network: { ...network, faults: [{ kind: 'late', at: 0, ns: 1e6 }] },
    gpus: 0,
    data: [d, e].map(() => ({ units: 1, initial: true, owner: 1 })),
    tasks: [],
    steps: [['read', d], ['open', 0], ['cancel', 0, 0], ['end', 0], ['await'], ['read', e]],
    reads: [d, e],
  };
}

/**
 * A run is cancelled on rank 0 and settled there. Rank 1 learns of the verdict late: there the read comes before the
 * settlement, and rank 0 must not wait for its value.
 */
function readBetweenEras(): SimulatedCase {
  const d = 0;
  return {
    ...calm,
    network: { ...network, faults: [{ kind: 'late', at: 1, ns: 1e6 }] },
    gpus: 0,
    data: [{ units: 1, initial: true, owner: 1 }],
    tasks: [],
    steps: [['open', 0], ['cancel', 0, 0], ['end', 0], ['pass', 100], ['read', d], ['await']],
    reads: [d],
  };
}

/**
 * Rank 1 reads `d`, whose copy to the host takes long. Rank 0 cancels a run that would have written `d` there, and both ranks
 * settle it before the read of rank 1 begins.
 */
function readBeforeMark(): SimulatedCase {
  const d = 0;
  const units = 1000;
  return {
    ...calm,
    network: { ...network, inlineBytes: 4096 },
    gpuUnits: 4 * units,
    hostUnits: 10 * units,
    data: [{ units, initial: false, owner: 1 }],
    tasks: [onGpu([d, 2]), onHost(0, 1, [d, 2])],
    steps: [
      ['open', 0],
      ['insert', 0, 0],
      ['end', 0],
      ['await'],
      ['read', d],
      ['open', 1],
      ['insert', 1, 1],
      ['pass', 1],
      ['cancel', 1, 0],
      ['end', 1],
      ['await'],
    ],
    reads: [],
  };
}

/**
 * Rank 1 fails to write `d`, which rank 0 reads meanwhile, with a second run open. On rank 0 the failure is settled, and `d` marked,
 * before the receive of the read has ended without a version.
 */
function receiveBeforeMark(): SimulatedCase {
  const d = 0;
  return {
    ...calm,
    network: { ...network, inlineBytes: 4096 },
    gpus: 0,
    data: [{ units: 1, initial: false, owner: 0 }],
    tasks: [
      { flows: [[d, 2]], body: 'script', micros: 1, rank: 1, fails: true },
      { flows: [[d, 3]], body: 'async', micros: 60, rank: 1 },
    ],
    steps: [
      ['open', 0],
      ['insert', 0, 0],
      ['open', 1],
      ['read', d],
      ['insert', 1, 1],
      ['end', 0],
      ['end', 1],
      ['await'],
    ],
    reads: [],
  };
}

/**
 * A run is cancelled on rank 0, which then takes no more of its tasks. Rank 1 learns of it late, and carries out one more
 * task. Both have a version of `d` then, and read it.
 */
function readOfFailedRun(): SimulatedCase {
  const d = 0;
  return {
    ...calm,
    gpus: 0,
    data: [{ units: 1, initial: true, owner: 0 }],
    tasks: [onHost(1, 1, [d, 2])],
    steps: [['open', 0], ['cancel', 0, 0], ['insert', 0, 0], ['read', d], ['end', 0], ['await']],
    reads: [],
  };
}

/**
 * Rank 2 reads `d` and cancels a run, of which it takes no more tasks. Rank 0 learns of it late, and carries out one more
 * task. Rank 1 is lost during a slow task, before it votes: the failed run is never settled. Both others read `d` again.
 */
function readAfterLoss(): SimulatedCase {
  const [d, slow] = [0, 1];
  return {
    ...calm,
    ranks: 3,
    network: {
      ...network,
      inlineBytes: 4096,
      faults: [{ kind: 'peerLost', rank: 1, ns: 100_000 }],
    },
    gpus: 0,
    data: [
      { units: 1, initial: true, owner: 0 },
      { units: 1, initial: false, owner: 1 },
    ],
    tasks: [onHost(1, MILLISECOND, [slow, 2]), onHost(0, 1, [d, 2])],
    steps: [
      ['read', d],
      ['open', 0],
      ['insert', 0, 0],
      ['cancel', 0, 2],
      ['insert', 0, 1],
      ['end', 0],
      ['await'],
      ['read', d],
    ],
    reads: [],
  };
}

/**
 * Rank 0 reads rank 1's copy of `d` through its mapping, which takes 40 us. Meanwhile the run is cancelled on rank 1, and
 * the program sets `d` there.
 */
function setBesideReader(): SimulatedCase {
  const [d, e] = [0, 1];
  return {
    ...calm,
    network: { ...network, comm: 'auto', ranksPerHost: 2 },
    gpus: 0,
    data: [
      { units: 80, initial: true, owner: 1 },
      { units: 1, initial: true, owner: 0 },
    ],
    hostUnits: 200,
    tasks: [onHost(0, 1, [d, 1], [e, 2])],
    steps: [
      ['open', 0],
      ['insert', 0, 0],
      ['pass', 20],
      ['cancel', 0, 1],
      ['set', d],
      ['end', 0],
      ['await'],
    ],
    reads: [d],
  };
}

/**
 * Rank 0 takes no task of a cancelled run, settles it and begins another run, whose task writes `d`. Rank 1 carries out a
 * task of the cancelled run that writes `d`, and learns late that this run is settled.
 */
function settledAhead(): SimulatedCase {
  const d = 0;
  return {
    ...calm,
    network: { ...network, faults: [{ kind: 'late', at: 1, ns: 1e6 }] },
    gpus: 0,
    data: [{ units: 1, initial: true, owner: 0 }],
    tasks: [onHost(1, 1, [d, 2]), onHost(0, 1, [d, 3])],
    steps: [
      ['open', 0],
      ['cancel', 0, 0],
      ['insert', 0, 0],
      ['end', 0],
      ['pass', 100],
      ['open', 1],
      ['insert', 1, 1],
      ['end', 1],
      ['await'],
    ],
    reads: [d],
  };
}

const onScript = (rank: number, micros: number, ...flows: CaseFlow[]): CaseTask => ({
  flows,
  body: 'script',
  micros,
  rank,
});

/**
 * Rank 0 computes `a` after a slow body, rank 1 computes `b` from it, and rank 0 needs `b` on its only worker. If that task
 * were issued before the one that writes `a`, the worker would wait for `b` for ever.
 */
function answerAhead(): SimulatedCase {
  const [slow, a, b, c] = [0, 1, 2, 3];
  return {
    ...calm,
    network: { ...network, inlineBytes: 4096 },
    gpus: 0,
    workers: 1,
    data: [0, 0, 1, 0].map((owner) => ({ units: 1, initial: true, owner })),
    tasks: [
      onScript(0, MILLISECOND, [slow, 3]),
      onHost(0, 1, [slow, 1], [a, 2]),
      onHost(1, 1, [a, 1], [b, 2]),
      onHost(0, 1, [b, 1], [c, 3]),
    ],
    reads: [c],
  };
}

/**
 * Rank 0 has three lanes for receives. Rank 1 answers in `b` to `c` what rank 0 computes from the second version of `y`, and
 * that comes when a slow body has read the first. If the receives of the answers took all lanes, it would not come.
 */
function lanesInTheWay(): SimulatedCase {
  const [y, a, sum] = [0, 1, 2];
  const answers = [3, 4, 5];
  return {
    ...calm,
    network: { ...network, inlineBytes: 4096 },
    gpus: 0,
    data: [1, 0, 0, ...answers.map(() => 1)].map((owner) => ({ units: 1, initial: true, owner })),
    tasks: [
      onScript(0, MILLISECOND, [y, 1], [sum, 3]),
      onHost(1, 1, [y, 3]),
      onHost(0, 1, [y, 1], [a, 2]),
      ...answers.map((b) => onHost(1, 1, [a, 1], [b, 2])),
      ...answers.map((b) => onHost(0, 1, [b, 1], [sum, 3])),
    ],
    reads: [sum],
  };
}

/**
 * Rank 0 has one lane for receives, and its task that pulls `x` waits for rank 1 to write it. Meanwhile the receive of `p` is
 * held, because that task comes before it, and the task that pulls `y` has the share of the memory. If the receive of `y` waited
 * behind that of `p`, it would wait for the first task, which waits for the share.
 */
function pulledBehindHeld(): SimulatedCase {
  const [x, p, y, a, b, c] = [0, 1, 2, 3, 4, 5];
  return {
    ...calm,
    network: { ...network, inlineBytes: 4096, lanes: 2 },
    gpus: 0,
    hostUnits: 60,
    data: [20, 1, 20, 1, 1, 1].map((units, d) => ({ units, initial: true, owner: d > y ? 0 : 1 })),
    tasks: [
      onHost(1, MILLISECOND, [x, 3]),
      pulling(0, [x, 1], [a, 2]),
      onHost(0, 1, [p, 1], [b, 2]),
      pulling(0, [y, 1], [c, 2]),
    ],
    reads: [a, b, c],
  };
}

/**
 * Rank 1 has 8 rows. Three are of a task that pulls `x`, for which it waits long, and two are of tasks behind it. The other three are
 * the gate, the receive and the task of another that pulls `y`; the row that gives its bytes back has to wait for room. If it had
 * reserved them already, the first task, which makes the room, would wait for them.
 */
function pulledInPart(): SimulatedCase {
  const [x, y, a, b, c] = [0, 1, 2, 3, 4];
  return {
    ...calm,
    // The announcement of `y` does not stand behind that of `x`.
    network: { ...network, inlineBytes: 4096, lanes: 8 },
    gpus: 0,
    hostUnits: 60,
    window: 8,
    data: [20, 20, 1, 1, 1].map((units, d) => ({ units, initial: true, owner: d > y ? 1 : 0 })),
    tasks: [
      onHost(0, MILLISECOND, [x, 3]),
      pulling(1, [x, 1], [a, 2]),
      onHost(1, 1, [a, 1], [b, 2]),
      onHost(1, 1, [a, 1], [b, 3]),
      pulling(1, [y, 1], [c, 2]),
    ],
  };
}

/**
 * Of the two tasks of rank 1 that pull, the second follows the first without data. The first asks for `x` when a slow body has written
 * `w`. If the second asked for `y` meanwhile, it would have the share of the memory, for which the first would wait.
 */
function pulledBeforeNamed(): SimulatedCase {
  const [x, y, w, a, b] = [0, 1, 2, 3, 4];
  return {
    ...calm,
    network: { ...network, inlineBytes: 4096 },
    gpus: 0,
    hostUnits: 60,
    data: [20, 20, 1, 1, 1].map((units, d) => ({ units, initial: true, owner: d > y ? 1 : 0 })),
    tasks: [
      { ...onHost(1, MILLISECOND, [w, 3]), body: 'async' },
      pulling(1, [x, 1], [w, 1], [a, 2]),
      { ...pulling(1, [y, 1], [b, 2]), after: [1] },
    ],
    reads: [a, b],
  };
}

/** A task of rank 2 has more pulled inputs than its rank has rows. */
function pulledBeyondWindow(): SimulatedCase {
  const owners = [0, 0, 0, 1, 1, 1];
  const out = owners.length;
  const reading = owners.map((_, d): CaseFlow => [d, 1]);
  return {
    ...calm,
    ranks: 3,
    network: { ...network, inlineBytes: 4096 },
    gpus: 0,
    window: 4,
    data: [...owners, 2].map((owner) => ({ units: 10, initial: true, owner })),
    tasks: [pulling(2, ...reading, [out, 2])],
  };
}

/**
 * Rank 0 has one lane for receives and a full host, on which a slow body holds a copy. The receive of `s` waits for memory there.
 * That of `l`, which comes after it, has its memory, and waits for a lane. When it is over, the kernel behind it writes `l` on the
 * GPU, and the memory of the copy on the host is free. If the receive of `s` had the lane, both would wait for ever.
 */
function lastLaneTaken(): SimulatedCase {
  const [s, l, out, slow] = [0, 1, 2, 3];
  return {
    ...calm,
    network: { ...network, inlineBytes: UNIT, lanes: 2 },
    gpuUnits: 4,
    hostUnits: 4,
    data: [1, 2, 1, 1].map((units, d) => ({ units, initial: true, owner: d === s ? 1 : 0 })),
    tasks: [
      onHost(0, MILLISECOND, [slow, 3]),
      onHost(0, 1, [s, 1], [out, 3]),
      onHost(1, 1, [l, 3]),
      onGpu([l, 3]),
    ],
  };
}

type Name =
  | 'answerAhead'
  | 'lastLaneTaken'
  | 'lanesInTheWay'
  | 'pulledBehindHeld'
  | 'pulledInPart'
  | 'pulledBeforeNamed'
  | 'pulledBeyondWindow'
  | 'readLeftPending'
  | 'readBetweenEras'
  | 'readBeforeMark'
  | 'receiveBeforeMark'
  | 'readOfFailedRun'
  | 'readAfterLoss'
  | 'setBesideReader'
  | 'settledAhead'
  | 'lateNews'
  | 'bothShort'
  | 'offerInTheWay'
  | 'aheadInTheWay'
  | 'lostBeforeOffer'
  | 'mappedAgain';
export const directedCases: Readonly<Record<Name, SimulatedCase>> = {
  answerAhead: answerAhead(),
  lastLaneTaken: lastLaneTaken(),
  lanesInTheWay: lanesInTheWay(),
  pulledBehindHeld: pulledBehindHeld(),
  pulledInPart: pulledInPart(),
  pulledBeforeNamed: pulledBeforeNamed(),
  pulledBeyondWindow: pulledBeyondWindow(),
  bothShort: bothShort(),
  lateNews: lateNews(),
  offerInTheWay: offerInTheWay(),
  aheadInTheWay: aheadInTheWay(),
  lostBeforeOffer: lostBeforeOffer(),
  mappedAgain: mappedAgain(),
  readLeftPending: readLeftPending(),
  readBetweenEras: readBetweenEras(),
  readBeforeMark: readBeforeMark(),
  receiveBeforeMark: receiveBeforeMark(),
  readOfFailedRun: readOfFailedRun(),
  readAfterLoss: readAfterLoss(),
  setBesideReader: setBesideReader(),
  settledAhead: settledAhead(),
};
