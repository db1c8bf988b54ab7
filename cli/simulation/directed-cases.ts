// Cases made by hand, for what random ones hardly ever come to.
import type { CaseNetwork, SimulatedCase } from './case.js';
import type { CaseFlow, CaseTask } from './case-program.js';

const MILLISECOND = 1000;
/** Rows of the window; insertion waits where the row of a slow task would be needed again. */
const WINDOW = 32;

const network: CaseNetwork = {
  comm: 'direct',
  flush: 'auto',
  inlineBytes: 0,
  treeFrom: 4,
  ranksPerHost: 1,
  room: 1000,
  ordering: 'owner',
  faults: [],
};

/** A machine without whims: what happens is what the program says. */
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

/**
 * Rank 0 has 16 units of GPU memory and offers the second version of `d` from the middle of them. Rank 1 takes it only
 * after a task that also reads `e`, which rank 0 computes when the slow `h` has come. Meanwhile, with the offer made, a
 * task is inserted that needs 10 units in one piece: were it to hold the ticket, `e` would never get its room.
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
  // The window is full before the last task is inserted, which so waits for some of the slow ones: time for the offer.
  const padding = Array.from({ length: WINDOW / 2 }, () => onHost(0, 1, [chain, 3]));
  const units = [7, 1, 1, 1, 10, 1, 1];
  const data = units.map((n, i) => ({
    units: n,
    initial: i === chain,
    owner: i === h || i === out ? 1 : 0,
  }));
  return { ...calm, data, tasks: [...slow, ...program, ...padding, onGpu([large, 2])] };
}

/** Rank 1 is lost while what it reads, too large to be offered from the GPU, is on its way to the host of rank 0. */
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

/** A GPU's writes by the network are not ordered for anybody; rank 1 reads on its GPU what rank 0 writes, in batches. */
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
    // The network holds news back, so that several receives end in one look at it.
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

/** Both GPUs of rank 0 have a copy of `d`, a long kernel and a task in line that needs more than the kernel leaves. */
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

type Name = 'bothShort' | 'offerInTheWay' | 'lostBeforeOffer' | 'mappedAgain';
export const directedCases: Readonly<Record<Name, SimulatedCase>> = {
  bothShort: bothShort(),
  offerInTheWay: offerInTheWay(),
  lostBeforeOffer: lostBeforeOffer(),
  mappedAgain: mappedAgain(),
};
