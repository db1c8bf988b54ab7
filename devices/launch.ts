// The launch of this process for the rooms above.
export { firstGpuOf, launchOf, withoutLaunch } from '../native/launch.js';
