// One line of the mutation table, in a process of its own so that an engine that loops for ever can be ended:
// node --import ./dist/test/support/removable-guards.js dist/devices/simulated/cases/mutate.js GUARD [MOST] prints a
// MutationResult as JSON.
import { mutate, mutations } from './mutations.js';

const [name, most] = process.argv.slice(2);
const mutation = mutations.find((m) => m.guard === name);
if (mutation === undefined) throw new Error(`no guard ${String(name)}`);
process.stdout.write(
  `${JSON.stringify(await mutate(mutation, most === undefined ? undefined : Number(most)))}\n`,
);
