// How this process was launched, according to its environment: alone, by the mpirun of an MPI library, or by Slurm's srun.
//
// Sources: Open MPI 4 (mpirun(1), "Exported environment variables"), MPICH 4 (Hydra: pm/hydra/proxy/pmip_cb.c), Slurm
// (srun(1), "Output environment variables"). Slurm's plugins pmi2 and pmix add PMI_RANK and PMI_SIZE, or PMIX_RANK.

/** The MPI libraries for which there are message layers. */
export type MpiLibrary = 'openmpi' | 'mpich';

/** The interface through which srun tells a rank about the others. */
type Pmi = 'pmi2' | 'pmix' | 'other' | 'none';

/** The launch of this process. */
export interface Launch {
  /** The library whose mpirun started this process, or srun; undefined: no launcher of ranks. */
  readonly launcher: MpiLibrary | 'srun' | undefined;
  /** The library to load: the launcher's own, or the one that usually speaks srun's interface; undefined: any. */
  readonly library: MpiLibrary | undefined;
  /** Under srun only. */
  readonly pmi: Pmi | undefined;
  readonly rank: number;
  readonly size: number;
  /** The same among the ranks of this host. */
  readonly localRank: number;
  readonly localSize: number;
  /** Hardware threads that the launcher has for all ranks of this host together; undefined if it does not say. */
  readonly hostCores: number | undefined;
}

export type Environment = Readonly<Record<string, string | undefined>>;

/**
 * Variables that a launcher leaves in the environment of its ranks. A launcher that a rank starts must not see them: it
 * would join the outer launch, or start its ranks through Slurm.
 */
const OUTER =
  /^(OMPI_(?!ALLOW|MCA_)|OMPI_MCA_(ess|orte|pmix)|PMIX_|PMI_|PMI2_|HYDI?_|HYDRA_|MPI_LOCAL|SLURM(?!_CONF$)|SRUN_)/;

/** The environment for a launch from inside a rank. */
export function withoutLaunch(env: Environment): Record<string, string | undefined> {
  return Object.fromEntries(Object.entries(env).filter(([name]) => !OUTER.test(name)));
}

/** Ranks on the node with this number, from `2(x3),1`: three nodes with two ranks, then one with one. 0: not named. */
function ranksOnNode(tasksPerNode: string, node: number): number {
  let passed = 0;
  for (const part of tasksPerNode.split(',')) {
    const [, count, nodes = '1'] = /^(\d+)(?:\(x(\d+)\))?$/.exec(part.trim()) ?? [];
    if (count === undefined) return 0;
    passed += Number(nodes);
    if (node < passed) return Number(count);
  }
  return 0;
}

const number = (env: Environment, name: string): number => Number.parseInt(env[name] ?? '', 10);

/** If a launcher does not tell the places of its ranks, each counts as alone on its host. */
const placed = (env: Environment, rank: string, size: string) => ({
  localRank: number(env, rank) || 0,
  localSize: number(env, size) || 1,
});

const ALONE: Launch = {
  launcher: undefined,
  library: undefined,
  pmi: undefined,
  rank: 0,
  size: 1,
  localRank: 0,
  localSize: 1,
  hostCores: undefined,
};

/**
 * A step of several tasks. The script of a batch job has SLURM_PROCID, too, but no step: it runs by itself. So does
 * a step of one task, such as an interactive shell.
 */
function underSrun(env: Environment): Launch | undefined {
  const size = number(env, 'SLURM_STEP_NUM_TASKS');
  const rank = number(env, 'SLURM_PROCID');
  if (!(size > 1) || !(rank >= 0)) return undefined;
  const pmi: Pmi =
    env['PMIX_RANK'] !== undefined
      ? 'pmix'
      : env['PMI_SIZE'] !== undefined
        ? 'pmi2'
        : env['SLURM_MPI_TYPE'] === undefined || env['SLURM_MPI_TYPE'] === 'none'
          ? 'none'
          : 'other';
  const local = ranksOnNode(
    env['SLURM_STEP_TASKS_PER_NODE'] ?? '',
    number(env, 'SLURM_NODEID') || 0,
  );
  return {
    launcher: 'srun',
    // Open MPI has spoken PMIx since version 2, MPICH's usual build speaks PMI. Another build is found out by its start.
    library: pmi === 'pmix' ? 'openmpi' : pmi === 'pmi2' ? 'mpich' : undefined,
    pmi,
    rank,
    size,
    localRank: number(env, 'SLURM_LOCALID') || 0,
    localSize: local || 1,
    hostCores: number(env, 'SLURM_CPUS_ON_NODE') || undefined,
  };
}

/**
 * Reads the environment that a launcher sets. An mpirun within a job of Slurm comes first: its ranks see Slurm's
 * variables, too, which then are those of the job or of mpirun's own helpers.
 */
export function launchOf(env: Environment = process.env): Launch {
  const open = number(env, 'OMPI_COMM_WORLD_SIZE');
  if (open > 0) {
    const where = placed(env, 'OMPI_COMM_WORLD_LOCAL_RANK', 'OMPI_COMM_WORLD_LOCAL_SIZE');
    const rank = number(env, 'OMPI_COMM_WORLD_RANK');
    return { ...ALONE, launcher: 'openmpi', library: 'openmpi', rank, size: open, ...where };
  }
  const isHydra = env['MPI_LOCALNRANKS'] !== undefined;
  const slurm = isHydra ? undefined : underSrun(env);
  if (slurm !== undefined) return slurm;
  const mpich = number(env, 'PMI_SIZE');
  if (mpich > 0) {
    const where = placed(env, 'MPI_LOCALRANKID', 'MPI_LOCALNRANKS');
    const rank = number(env, 'PMI_RANK');
    return { ...ALONE, launcher: 'mpich', library: 'mpich', rank, size: mpich, ...where };
  }
  return ALONE;
}

/** The variables that show a process some GPUs of a driver only. */
const VISIBLE: Readonly<Record<string, readonly string[]>> = {
  cuda: ['CUDA_VISIBLE_DEVICES'],
  hip: ['HIP_VISIBLE_DEVICES', 'ROCR_VISIBLE_DEVICES'],
};

/** GPUs in such a list: drivers read it up to the first word that names none. Undefined: there is no list. */
function listedGpus(driver: string, env: Environment): number | undefined {
  const name = (VISIBLE[driver] ?? []).find((each) => env[each] !== undefined);
  if (name === undefined) return undefined;
  const words = (env[name] ?? '').split(',');
  const end = words.findIndex((word) => !/^\s*(\d+|GPU-.*|MIG-.*)\s*$/.test(word));
  return end < 0 ? words.length : end;
}

/** If the launcher has given each rank GPUs of its own (`srun --gpus-per-task`, or a script that sets CUDA_VISIBLE_DEVICES). */
function hasOwnGpus(driver: string, gpus: number, localSize: number, env: Environment): boolean {
  const listed = listedGpus(driver, env);
  return listed !== undefined && listed >= gpus && listed < localSize * gpus;
}

/**
 * The driver's number of the first GPU of this process, which takes `gpus` of them. The ranks of a host divide its GPUs
 * in their order. But if the process sees too few for all of them, they are its own: it takes the first.
 */
export function firstGpuOf(driver: string, gpus: number, env: Environment = process.env): number {
  if (driver === 'emulated') return 0;
  const { localRank, localSize } = launchOf(env);
  return hasOwnGpus(driver, gpus, localSize, env) ? 0 : localRank * gpus;
}

/** The ranks that divide the GPUs that this process sees; 1 if they are its own. */
export function ranksOnGpus(driver: string, gpus: number, env: Environment = process.env): number {
  const { localSize } = launchOf(env);
  return driver === 'emulated' || hasOwnGpus(driver, gpus, localSize, env) ? 1 : localSize;
}
