// V8's inlining budget. A task runs through many small functions of the engine, one idea each. V8 inlines the callees of
// a function up to a total size and calls the rest, which costs the engine a fifth of its time per task (`npm run bench`
// shows it). The budget only affects functions that are compiled later, so it may be raised while programs run.
import { setFlagsFromString } from 'node:v8';

/** Bytecode that V8 may inline into one function, in bytes; its default is 920. */
const BUDGET = 4000;
let raised = false;

/** Raises the budget once per process, unless the environment says HEADRACE_V8_INLINING=default. */
export function raiseInliningBudget(): void {
  if (raised || process.env['HEADRACE_V8_INLINING'] === 'default') return;
  raised = true;
  setFlagsFromString(`--max-inlined-bytecode-size-cumulative=${BUDGET}`);
}
