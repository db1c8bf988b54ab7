// Devices in the user's words: 'host', or a GPU number from 0.

import type { Backend } from '../../devices/backend.js';
import { HeadraceError } from '../../devices/errors.js';
import { FIRST_GPU, HOST, type SpaceId } from '../../devices/handles.js';
import { shown } from '../checks.js';

/** Memory space of a device in the user's words. @throws HeadraceError `ERR_NO_DEVICE` */
export function spaceOf(backend: Backend, device: number | 'host'): SpaceId {
  if (device === 'host') return HOST;
  const gpus = backend.spaces.length - 1;
  if (!Number.isInteger(device) || device < 0 || device >= gpus) {
    throw new HeadraceError(
      'ERR_NO_DEVICE',
      `there is no GPU ${shown(device)}: this runtime has ${gpus === 0 ? 'none' : `GPUs 0 to ${gpus - 1}`}`,
      { remedy: "a device is 'host' or the number of a GPU" },
    );
  }
  return (FIRST_GPU + device) as SpaceId;
}
