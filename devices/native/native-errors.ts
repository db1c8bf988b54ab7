// Errors of the native core as those of the project.
import { NativeError } from '../../native/index.js';
import { HeadraceError } from '../errors.js';

const ERROR_CODES: Readonly<Record<string, string>> = {
  NATIVE_UNAVAILABLE: 'ERR_NATIVE_MISSING',
  INVALID_OPTION: 'ERR_OPTION',
  DRIVER_UNAVAILABLE: 'ERR_NO_GPU',
  DRIVER: 'ERR_DRIVER',
  OUT_OF_MEMORY: 'ERR_OUT_OF_MEMORY',
  OUT_OF_RANGE: 'ERR_OUT_OF_RANGE',
  KERNEL_LIBRARY: 'ERR_KERNEL_LIBRARY',
  KERNEL_SOURCE: 'ERR_KERNEL_SOURCE',
  CLOSED: 'ERR_RUNTIME_CLOSED',
};

/** Runs a call into the addon and turns its errors into those of the project. */
export function native<T>(call: () => T): T {
  try {
    return call();
  } catch (error) {
    if (!(error instanceof NativeError)) throw error;
    const code = ERROR_CODES[error.code] ?? 'ERR_NATIVE';
    throw new HeadraceError(code, error.message, {
      cause: error,
      remedy: error.remedy,
    });
  }
}
