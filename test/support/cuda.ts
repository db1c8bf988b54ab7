// CUDA for tests: the GPUs of this machine with HEADRACE_TEST_DRIVER=cuda, otherwise the stub driver libraries (npm run
// setup -- --with-stubs builds them). Libraries are searched once per process, so this import comes first.
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
