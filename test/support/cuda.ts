// CUDA for tests: the GPUs of this machine where HEADRACE_TEST_DRIVER=cuda says so, else the stub driver libraries
// (npm run setup -- --with-stubs builds them). Libraries are looked for once per process, so this comes first.
import { realGpus, stub } from './needs.js';

/** Real GPUs, of which there are `cudaGpus`. */
export const isReal: boolean = realGpus > 0;
/** GPUs to test on. */
export const cudaGpus: number = isReal ? realGpus : 2;

if (!isReal) {
  process.env['HEADRACE_CUDA_LIBRARY'] = stub('stub_cuda');
  process.env['HEADRACE_NVRTC_LIBRARY'] = stub('stub_nvrtc');
  process.env['HEADRACE_CUBLAS_LIBRARY'] = stub('stub_blas');
  process.env['HEADRACE_CUSOLVER_LIBRARY'] = stub('stub_blas');
}
