// The ring of commands to the thread of the network: a thread that takes no command is reported; a slow one is not.
import { afterEach, expect, test } from 'vitest';
import { NativeNetwork } from '../../devices/native/network.js';
import { NetLimit, NetRecord, NetWord } from '../../native/mpi-contract.js';

type Session = ConstructorParameters<typeof NativeNetwork>[0];

/** A network over a session whose thread is `wake`. */
function network(patience: number, wake: (words: Int32Array) => void): NativeNetwork {
  const words = (n: number): Int32Array => new Int32Array(new SharedArrayBuffer(4 * n));
  const shared = words(NetWord.words);
  const session = {
    facts: { rank: 3, size: 4, library: 'none', threadLevel: 'serialized', gpuAware: false },
    opened: { peers: [], mappingProblem: '', directProblem: '' },
    words: shared,
    commands: words(NetLimit.records * NetRecord.words),
    events: words(NetLimit.records * NetRecord.words),
    outbox: new Uint8Array(new SharedArrayBuffer(64)),
    inbox: new Uint8Array(new SharedArrayBuffer(64)),
    wake: () => wake(shared),
    end: () => {},
    deadline: { watchSignal: () => {}, heardSignal: () => {}, leaveSignal: () => {} },
  } as unknown as Session;
  return new NativeNetwork(session, [], false, '', patience);
}

const fill = (port: NativeNetwork): void => {
  for (let i = 0; i < NetLimit.records; i++) port.abandon();
};

const SIGNALS = ['SIGUSR1', 'SIGTERM', 'SIGINT'] as const;
const before = SIGNALS.map((signal) => process.listeners(signal));
/** Takes back the signal handlers of the network, which only its close does otherwise. */
afterEach(() => {
  for (const [i, signal] of SIGNALS.entries())
    for (const listener of process.listeners(signal))
      if (!before[i].includes(listener)) process.off(signal, listener);
});

test('a thread that takes nothing is reported', () => {
  const port = network(50, () => {});
  fill(port);
  expect(() => port.abandon()).toThrow(
    expect.objectContaining({
      code: 'ERR_INTERNAL',
      message: expect.stringContaining('rank 3 has taken no command for 0.05 s'),
    }),
  );
});

test('a thread that is slow is waited for', () => {
  let calls = 0;
  const port = network(60_000, (words) => {
    if (++calls === 5) Atomics.add(words, NetWord.commandsTaken, 1);
  });
  fill(port);
  port.abandon();
  expect(calls).toBe(5);
});
