// Why a datum that should have come from another rank has no value, in the words of the read that asks for it.
import { describe, expect, it } from 'vitest';
import { HeadraceError } from '../../devices/errors.js';
import { Poison } from '../../devices/memory/directory.js';
import { Refusals } from '../../scheduler/ranks/refusals.js';

const [D, RECEIVE, READER] = [3, 17, 19];

/** The refusals of a rank on which task `poisonedBy` has left datum x without a value. */
function refusalsWith(poisonedBy: number): Refusals {
  const info = { [D]: { name: 'x' } };
  const directory = {
    info,
    poison: { [D]: Poison.writerCancelled },
    poisonedBy: { [D]: poisonedBy },
    marked: new Map(),
  };
  const engine = { directory, x: { directory } };
  return new Refusals(engine as never, undefined as never, undefined as never);
}

describe('a datum whose receive has failed', () => {
  it.each(['ERR_TASK_FAILED', 'ERR_ABORTED'])('has not come when its run failed: %s', (code) => {
    const refusals = refusalsWith(RECEIVE);
    const cause = new HeadraceError(code, 'task later #61 failed: as asked for');
    refusals.note(D as never, RECEIVE, cause);
    const error = refusals.ofDatum(D as never, READER as never);
    expect(error).toMatchObject({ code: 'ERR_DATUM_POISONED', details: { datum: 'x', cause } });
    expect(error?.message).toContain("datum 'x' has no usable value: it had not come");
  });

  it('says what the other rank has said', () => {
    const refusals = refusalsWith(RECEIVE);
    const cause = new HeadraceError('ERR_PEER_FAILED', "rank 1 could not send datum 'x'");
    refusals.note(D as never, RECEIVE, cause);
    expect(refusals.ofDatum(D as never, READER as never)).toBe(cause);
  });

  it('says nothing of a failure before that of another task, or of an earlier datum', () => {
    const refusals = refusalsWith(RECEIVE + 1);
    refusals.note(D as never, RECEIVE, new HeadraceError('ERR_TASK_FAILED', ''));
    expect(refusals.ofDatum(D as never, READER as never)).toBeUndefined();
    const other = refusalsWith(RECEIVE);
    other.note(D as never, RECEIVE, new HeadraceError('ERR_TASK_FAILED', ''));
    other.forget(D as never);
    expect(other.ofDatum(D as never, READER as never)).toBeUndefined();
  });
});
