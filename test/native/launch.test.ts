// The launch of a process, read from environments as the launchers set them (Open MPI 4.1, MPICH 4.0, Slurm 22.05).
import { describe, expect, it } from 'vitest';
import { firstGpuOf, launchOf, ranksOnGpus, withoutLaunch } from '../../native/launch.js';
import { mpiEnvironment } from '../../native/mpi.js';

/** The fourth task of a step on three nodes with 2, 2 and 1 tasks. */
const step = {
  SLURM_JOB_ID: '7',
  SLURM_STEP_ID: '0',
  SLURM_STEP_NUM_TASKS: '5',
  SLURM_STEP_TASKS_PER_NODE: '2(x2),1',
  SLURM_PROCID: '3',
  SLURM_LOCALID: '1',
  SLURM_NODEID: '1',
  SLURM_CPUS_ON_NODE: '8',
};
const pmix = { ...step, SLURM_MPI_TYPE: 'pmix', PMIX_RANK: '3', PMIX_NAMESPACE: 'slurm.pmix.7.0' };
const pmi2 = { ...step, SLURM_MPI_TYPE: 'pmi2', PMI_RANK: '3', PMI_SIZE: '5', PMI_FD: '11' };
const openMpi = {
  OMPI_COMM_WORLD_SIZE: '4',
  OMPI_COMM_WORLD_RANK: '3',
  OMPI_COMM_WORLD_LOCAL_SIZE: '2',
  OMPI_COMM_WORLD_LOCAL_RANK: '1',
};
const hydra = { PMI_SIZE: '4', PMI_RANK: '3', MPI_LOCALNRANKS: '2', MPI_LOCALRANKID: '1' };
const place = { rank: 3, size: 5, localRank: 1, localSize: 2 };
const ofMpirun = { rank: 3, size: 4, localRank: 1, localSize: 2, hostCores: undefined };

describe('the launch of a process', () => {
  it.each([
    ['srun --mpi=pmix', pmix, { launcher: 'srun', library: 'openmpi', pmi: 'pmix', ...place }],
    ['srun --mpi=pmi2', pmi2, { launcher: 'srun', library: 'mpich', pmi: 'pmi2', ...place }],
    ['srun --mpi=none', step, { launcher: 'srun', library: undefined, pmi: 'none', ...place }],
    [
      'another plugin of srun',
      { ...step, SLURM_MPI_TYPE: 'cray_shasta' },
      { launcher: 'srun', library: undefined, pmi: 'other', ...place },
    ],
    ['mpirun of Open MPI', openMpi, { launcher: 'openmpi', library: 'openmpi', ...ofMpirun }],
    ['mpirun of MPICH', hydra, { launcher: 'mpich', library: 'mpich', ...ofMpirun }],
    ['mpirun of Open MPI in a step', { ...pmix, ...openMpi }, { launcher: 'openmpi', ...ofMpirun }],
    ['mpirun of MPICH in a step', { ...pmi2, ...hydra }, { launcher: 'mpich', ...ofMpirun }],
  ])('is that of %s', (_name, env, expected) => {
    expect(launchOf(env)).toMatchObject(expected);
  });

  it.each([
    ['nothing', {}],
    ['the script of a batch job', { SLURM_JOB_ID: '7', SLURM_PROCID: '0', SLURM_NTASKS: '5' }],
    [
      'a shell in a step of one task',
      { ...pmix, SLURM_STEP_NUM_TASKS: '1', SLURM_PROCID: '0', PMIX_RANK: '0' },
    ],
  ])('is that of a process by itself under %s', (_name, env) => {
    expect(launchOf(env)).toMatchObject({ launcher: undefined, rank: 0, size: 1, localSize: 1 });
  });

  it('has the ranks of the node and the cores of the step there', () => {
    expect(launchOf(pmix).hostCores).toBe(8);
    const last = { ...pmix, SLURM_NODEID: '2', SLURM_PROCID: '4', SLURM_LOCALID: '0' };
    expect(launchOf(last)).toMatchObject({ rank: 4, localRank: 0, localSize: 1 });
    expect(launchOf({ ...pmix, SLURM_NODEID: '0' }).localSize).toBe(2);
    // What cannot be read does not make ranks neighbours.
    expect(launchOf({ ...pmix, SLURM_STEP_TASKS_PER_NODE: '' }).localSize).toBe(1);
  });

  it('leaves no trace in the environment of a launch from inside', () => {
    const kept = {
      PATH: '/bin',
      SLURM_CONF: '/etc/slurm.conf',
      OMPI_MCA_btl: 'self',
      OMPI_ALLOW_RUN_AS_ROOT: '1',
    };
    expect(withoutLaunch({ ...pmix, ...pmi2, ...openMpi, ...hydra, ...kept })).toEqual(kept);
  });
});

describe('the first GPU of a rank', () => {
  const gpus = (list: string | undefined, count = 1, driver = 'cuda') =>
    firstGpuOf(driver, count, { ...openMpi, CUDA_VISIBLE_DEVICES: list });

  it('follows those of the ranks before it on the host', () => {
    expect(gpus(undefined)).toBe(1);
    expect(gpus(undefined, 2)).toBe(2);
    expect(gpus('0,1,2,3', 2)).toBe(2);
    expect(gpus('4,GPU-1b2c', 1)).toBe(1);
  });

  it('is the first that it sees, if it does not see those of the others', () => {
    expect(gpus('3')).toBe(0);
    expect(gpus('2,3', 2)).toBe(0);
    expect(gpus('MIG-77', 1)).toBe(0);
    const hip = { ...openMpi, ROCR_VISIBLE_DEVICES: '1' };
    expect(firstGpuOf('hip', 1, hip)).toBe(0);
    expect(firstGpuOf('cuda', 1, hip)).toBe(1);
  });

  it('is out of reach if the process sees too few for itself: the driver reports it', () => {
    expect(gpus('3', 2)).toBe(2);
    expect(gpus('', 1)).toBe(1);
    expect(gpus('-1,0', 1)).toBe(1);
  });

  it('is the same on all ranks if GPUs are emulated', () => {
    expect(gpus('0,1', 1, 'emulated')).toBe(0);
  });
});

describe('the ranks that divide the GPUs of a host', () => {
  const ranks = (list: string | undefined, count = 1, driver = 'cuda') =>
    ranksOnGpus(driver, count, { ...openMpi, CUDA_VISIBLE_DEVICES: list });

  it('are all of the host, or one that has GPUs of its own', () => {
    expect(ranks(undefined)).toBe(2);
    expect(ranks('0,1')).toBe(2);
    expect(ranks('3')).toBe(1);
    expect(ranks('2,3', 2)).toBe(1);
    expect(ranks('0,1', 1, 'emulated')).toBe(1);
    expect(ranksOnGpus('cuda', 2, {})).toBe(1);
  });
});

describe('the environment of a process that loads an MPI library', () => {
  it('switches the hooks of UCX off, which crash Node, unless the user wants them', () => {
    expect(mpiEnvironment({ HOME: '/root' })).toEqual({
      HOME: '/root',
      UCX_MEM_EVENTS: 'no',
      UCX_HANDLE_ERRORS: 'none',
    });
    expect(mpiEnvironment({ UCX_MEM_EVENTS: 'yes' })).toMatchObject({ UCX_MEM_EVENTS: 'yes' });
  });
});
