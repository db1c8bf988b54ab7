// Opens simulated ranks that share a world, with tables that suit their number.
import { SimulatedBackend } from '../../devices/simulated/machine/backend.js';
import { type MachineDescription, queuesOf } from '../../devices/simulated/machine/machine.js';
import { World } from '../../devices/simulated/machine/world.js';
import { SimulatedNetwork } from '../../devices/simulated/network/network.js';
import { ringFor } from '../../devices/submission.js';
import { HeadraceError } from '../../scheduler/errors.js';
import { Runtime } from '../../scheduler/index.js';

/**
 * Rows of the task window, records per queue (`spare` times the least number or more) and commands ahead: fewer if many
 * ranks share this process.
 */
const alone = { window: 65_536, ringRecords: 4096, runAhead: 1024, spare: 2, lanes: 0 };
const among = { window: 16_384, ringRecords: 256, runAhead: 64, spare: 2, lanes: 32 };
/** Tables of a thousand ranks in the caches and in memory: each rank has fewer tasks, too. */
const crowd = { window: 2048, ringRecords: 64, runAhead: 64, spare: 1, lanes: 8 };
const CROWD_FROM = 128;
/** Workers cost memory on real and simulated ranks, and tile programs do not use them. */
const WORKERS_AMONG = 1;

/** Simulated ranks in one world. A single rank has no network. */
export interface SimulatedRanks {
  readonly world: World;
  readonly backends: readonly SimulatedBackend[];
  readonly runtimes: readonly Runtime[];
  readonly network: SimulatedNetwork | undefined;
}

/**
 * Opens `ranks` simulated ranks in one world. `traceOf` is the trace file of a rank; without it there are no traces.
 * `inProcess`: ranks of all worlds in this process, by which the tables get their sizes.
 *
 * @throws HeadraceError `ERR_MACHINE` when several ranks have no network
 */
export function openRanks(
  machine: MachineDescription,
  ranks: number,
  traceOf?: (rank: number) => string,
  inProcess: number = ranks,
): SimulatedRanks {
  const world = new World();
  const sizes = ranks === 1 ? alone : inProcess < CROWD_FROM ? among : crowd;
  const workers = ranks === 1 ? machine.workers : WORKERS_AMONG;
  const described = {
    ...machine,
    workers,
    lanes: ranks === 1 ? 0 : (machine.lanes ?? sizes.lanes),
  };
  const ringRecords = ringFor(sizes.ringRecords, queuesOf(described).length, sizes.spare);
  const backends = Array.from(
    { length: ranks },
    () => new SimulatedBackend({ machine: described, world, ringRecords, story: false }),
  );
  let network: SimulatedNetwork | undefined;
  if (ranks > 1) {
    if (machine.network === undefined) {
      throw new HeadraceError(
        'ERR_MACHINE',
        `machine '${machine.name}' has no 'network' between ranks`,
        {
          remedy: 'add "network": { "bandwidth": ..., "latency": ... } to its description',
        },
      );
    }
    const { network: link, ranksPerHost = 1 } = machine;
    const { adversary } = backends[0];
    network = new SimulatedNetwork(world, backends, { link, ranksPerHost, adversary });
  }
  const runtimes = backends.map((backend, rank) =>
    Runtime.over(
      backend,
      {
        ...(traceOf === undefined ? {} : { trace: traceOf(rank) }),
        name: 'simulate',
        workers,
        window: sizes.window,
        runAhead: sizes.runAhead,
      },
      network?.ports[rank],
    ),
  );
  return { world, backends, runtimes, network };
}
