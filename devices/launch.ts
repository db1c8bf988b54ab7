// The launch of this process for the rooms above.
export { firstGpuOf, launchOf, ranksOnGpus, withoutLaunch } from '../native/launch.js';
