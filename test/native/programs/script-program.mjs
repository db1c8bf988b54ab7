// A class in the module of the program that uses it: script workers would run the whole program.
import { Runtime, readWrite, task } from '../../../dist/index.js';

export const program = task({
  name: 'program',
  module: import.meta.url,
  flows: { x: readWrite('f64') },
  body: () => {},
});
await Runtime.create();
