// The first call of every script that runs something: the set-up, and the end of the process if it fails.
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { forwardSignals, isEnding } from './command.mjs';
import { SetUpError, setUp } from './set-up.mjs';

export const root = path.dirname(path.dirname(path.dirname(fileURLToPath(import.meta.url))));

/**
 * Brings the checkout up to date. All messages go to stderr. Ends the process with code 1 when something that is required
 * cannot be had.
 *
 * @param {Partial<Parameters<typeof setUp>[0]>} [options]
 */
export async function prepare(options = {}) {
  forwardSignals();
  const say = (line) => process.stderr.write(`setup: ${line}\n`);
  try {
    await setUp({ root, say, ...options });
  } catch (error) {
    if (isEnding()) return;
    if (error instanceof SetUpError) say(error.message);
    else process.stderr.write(`setup: ${error.stack}\n`);
    process.exit(1);
  }
}
