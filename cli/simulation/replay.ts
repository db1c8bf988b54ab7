// Steps through a case from a file, one engine pass after the other, and says what goes wrong where.
import { readFileSync } from 'node:fs';
import { HeadraceError } from '../../scheduler/errors.js';
import { type CliContext, ExitCode } from '../context.js';
import type { SimulatedCase } from './case.js';
import { Player } from './play.js';

/** Prints every command and completion of the case; exit code 1 when something is wrong with the run. */
export async function replay(file: string, context: CliContext): Promise<number> {
  let c: SimulatedCase;
  try {
    c = JSON.parse(readFileSync(file, 'utf8')) as SimulatedCase;
  } catch (cause) {
    throw new HeadraceError('ERR_REPLAY', `cannot read the case '${file}'`, { cause });
  }
  const player = new Player(c);
  const { backend, engine } = player;
  const say = (line: string): void => {
    context.stdout.write(`${String(Math.round(backend.now())).padStart(10)} ns  ${line}\n`);
  };
  const { exec, copy } = backend;
  backend.exec = (queue, kernel, id, ...rest) => {
    const seq = exec.call(backend, queue, kernel, id, ...rest);
    say(`queue ${queue} record ${seq}: task #${id}`);
    return seq;
  };
  backend.copy = (queue, id, to, toOffset, from, ...rest) => {
    const seq = copy.call(backend, queue, id, to, toOffset, from, ...rest);
    say(
      `queue ${queue} record ${seq}: copy of datum ${engine.transfers.datum[id]}, space ${from} -> ${to}`,
    );
    return seq;
  };
  let told = 0;
  let retired = engine.tasks.head;
  player.onPass = () => {
    if (engine.tasks.head !== retired) {
      retired = engine.tasks.head;
      say(`tasks before #${retired} are retired`);
    }
    for (; told < player.memory.violations.length; told++)
      say(`! ${player.memory.violations[told].message}`);
  };
  const played = await player.play();
  for (const problem of played.problems) context.stdout.write(`! ${problem}\n`);
  context.stdout.write(
    `${played.outcome === '' ? 'ended well' : `ended with ${played.outcome}`}, ${played.problems.length} problems\n`,
  );
  return played.problems.length === 0 ? ExitCode.ok : ExitCode.failure;
}
