// CUDA for tests: the GPUs of this machine where HEADRACE_TEST_DRIVER=cuda says so, else the stub driver libraries
// (node scripts/gpu-native-tests.mjs builds them). Libraries are looked for once per process, so this comes first.
import { existsSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

const folder = fileURLToPath(new URL('../../build/Release', import.meta.url));
const stub = (name: string): string => path.join(folder, `lib${name}.so`);

/** Real GPUs, of which there are `cudaGpus`. */
export const isReal: boolean = process.env['HEADRACE_TEST_DRIVER'] === 'cuda';
/** Whether there is anything to test on. */
export const hasCuda: boolean = isReal || existsSync(stub('stub_cuda'));
/** GPUs to test on. */
export const cudaGpus: number = isReal ? Number(process.env['HEADRACE_TEST_GPUS']) : 2;

if (!isReal) {
  process.env['HEADRACE_CUDA_LIBRARY'] = stub('stub_cuda');
  process.env['HEADRACE_NVRTC_LIBRARY'] = stub('stub_nvrtc');
  process.env['HEADRACE_CUBLAS_LIBRARY'] = stub('stub_blas');
  process.env['HEADRACE_CUSOLVER_LIBRARY'] = stub('stub_blas');
}
