// The doctor's report about CUDA GPUs: devices by UUID, memory, network writes, libraries, and the measured bandwidth of
// every way between two memories. The child process that asks the addon measures it.

interface Library {
  readonly found: boolean;
  readonly library: string;
  readonly reason: string;
}

/** The addon's report about CUDA, made without a test (native/contract.ts, `NativeProbe.cuda`). */
interface CudaProbe {
  readonly devices: readonly {
    readonly name: string;
    readonly uuid: string;
    readonly bytes: number;
    readonly capability: string;
    readonly rdmaSupported: boolean;
    readonly rdmaFlushOptions: number;
    readonly rdmaOrdering: number;
  }[];
  readonly nvrtc: Library;
  readonly cublas: Library;
  readonly cusolver: Library;
}

/** The part of the addon that measuring needs (native/contract.ts, `NativeModule`). */
interface MeasuringAddon {
  open(options: {
    readonly driver: string;
    readonly gpus: number;
    readonly gpuBytes: number;
    readonly hostBytes: number;
    readonly workers: number;
    readonly computeStreams: number;
    readonly ringRecords: number;
    readonly checked: boolean;
  }): { peerAccess(to: number, from: number): boolean; close(): void };
  rawLoop(
    name: string,
    gpus: number,
    count: number,
    bytes: number,
    to?: number,
    from?: number,
  ): number;
}

/** Bytes per copy when bandwidth is measured, and copies. */
const BYTES = 64 * 2 ** 20;
const COPIES = 8;

/** GB/s between the host and each GPU, and between GPUs: `peers[to][from]`, 0 if a copy is not direct. */
interface CudaBandwidth {
  readonly h2d: readonly number[];
  readonly d2h: readonly number[];
  readonly peers: readonly (readonly number[])[];
}

/** The findings about CUDA. Bandwidth is not measured under a launcher, whose other ranks wait meanwhile. */
export type CudaFacts = CudaProbe & { readonly bandwidth?: CudaBandwidth };

/** Measures every way. The GPUs are held open meanwhile: opening one takes longer than measuring. */
export function measureCuda(native: MeasuringAddon, cuda: CudaProbe): CudaFacts {
  const gpus = cuda.devices.length;
  const core = native.open({
    driver: 'cuda',
    gpus,
    gpuBytes: 2 ** 21,
    hostBytes: 2 ** 20,
    workers: 0,
    computeStreams: 1,
    ringRecords: 64,
    checked: false,
  });
  try {
    const rate = (name: string, to: number, from?: number): number => {
      const nanoseconds = native.rawLoop(name, gpus, COPIES, BYTES, to, from);
      return Number((BYTES / nanoseconds).toFixed(1));
    };
    const ordinals = cuda.devices.map((_, i) => i);
    return {
      ...cuda,
      bandwidth: {
        h2d: ordinals.map((g) => rate('h2d', g)),
        d2h: ordinals.map((g) => rate('d2h', g)),
        peers: ordinals.map((to) =>
          ordinals.map((from) =>
            to !== from && core.peerAccess(to + 1, from + 1) ? rate('d2d', to, from) : 0,
          ),
        ),
      },
    };
  } finally {
    core.close();
  }
}

const ORDERING: Readonly<Record<number, string>> = {
  0: 'not ordered',
  100: 'ordered for the owner',
  200: 'ordered for all GPUs',
};

/** A line per GPU with the rates to it. */
function copies(
  gpus: number,
  { h2d, d2h, peers }: CudaBandwidth,
): { readonly name: string; readonly state: 'ok'; readonly found: string }[] {
  const ordinals = Array.from({ length: gpus }, (_, g) => g);
  const rate = (to: number, from: number): string =>
    peers[to][from] > 0 ? `${peers[to][from]} GB/s` : 'over the host';
  return ordinals.map((to) => ({
    name: `copies to GPU ${to}`,
    state: 'ok',
    found: [
      `host ${h2d[to]} GB/s (back ${d2h[to]})`,
      ...ordinals.filter((from) => from !== to).map((from) => `GPU ${from} ${rate(to, from)}`),
    ].join(', '),
  }));
}

/** Findings for the doctor's table. */
export function cudaFindings({ devices, bandwidth, nvrtc, cublas, cusolver }: CudaFacts): {
  readonly name: string;
  readonly state: 'ok' | 'absent';
  readonly found: string;
}[] {
  const gpus = devices.map((gpu, g) => {
    const flush = [
      ...(gpu.rdmaFlushOptions & 1 ? ['by the host'] : []),
      ...(gpu.rdmaFlushOptions & 2 ? ['by the stream'] : []),
    ];
    const network = gpu.rdmaSupported
      ? `network writes ${ORDERING[gpu.rdmaOrdering] ?? gpu.rdmaOrdering}, flush ${flush.join(', ') || 'impossible'}`
      : 'no network writes to its memory';
    return {
      name: `CUDA GPU ${g}`,
      state: 'ok' as const,
      found: `${gpu.name}, ${gpu.uuid}, ${(gpu.bytes / 2 ** 30).toFixed(1)} GiB, ${gpu.capability}; ${network}`,
    };
  });
  const ways = bandwidth === undefined ? [] : copies(devices.length, bandwidth);
  const libraries = Object.entries({ NVRTC: nvrtc, cuBLAS: cublas, cuSOLVER: cusolver }).map(
    ([name, library]) => ({
      name,
      state: library.found ? ('ok' as const) : ('absent' as const),
      found: library.found ? library.library : library.reason,
    }),
  );
  return [...gpus, ...ways, ...libraries];
}
