// Steps through a case from a file, one engine pass after the other, and reports every violation with its place.
import { readFileSync } from 'node:fs';
import type { SimulatedCase } from '../../devices/simulated/cases/case.js';
import { Player } from '../../devices/simulated/cases/play.js';
import type { RankPlayer } from '../../devices/simulated/cases/rank-player.js';
import { HeadraceError } from '../../scheduler/errors.js';
import { type CliContext, ExitCode } from '../context.js';

/** Prints every command and completion of the case; exit code 1 if the run has a violation. */
export async function replay(file: string, context: CliContext): Promise<number> {
  let c: SimulatedCase;
  try {
    c = JSON.parse(readFileSync(file, 'utf8')) as SimulatedCase;
  } catch (cause) {
    throw new HeadraceError('ERR_REPLAY', `cannot read the case '${file}'`, { cause });
  }
  const player = new Player(c);
  let told = 0;
  const say = (rank: number, time: number, line: string): void => {
    const where = player.ranks.length > 1 ? `rank ${rank}  ` : '';
    context.stdout.write(`${String(Math.round(time)).padStart(10)} ns  ${where}${line}\n`);
  };
  for (const rank of player.ranks) {
    follow(rank, (line) => say(rank.rank, rank.backend.now(), line));
    const { onPass } = rank;
    rank.onPass = () => {
      onPass?.();
      for (; told < player.memory.violations.length; told++)
        say(rank.rank, rank.backend.now(), `! ${player.memory.violations[told].message}`);
    };
  }
  const played = await player.play();
  for (const problem of played.problems) context.stdout.write(`! ${problem}\n`);
  context.stdout.write(
    `${played.outcome === '' ? 'ended well' : `ended with ${played.outcome}`}, ${played.problems.length} problems\n`,
  );
  return played.problems.length === 0 ? ExitCode.ok : ExitCode.failure;
}

/** Prints the commands of a rank and the progress of its tasks. */
function follow(rank: RankPlayer, say: (line: string) => void): void {
  const { backend, engine } = rank;
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
  let retired = engine.tasks.head;
  rank.onPass = () => {
    if (engine.tasks.head === retired) return;
    retired = engine.tasks.head;
    say(`tasks before #${retired} are retired`);
  };
}
