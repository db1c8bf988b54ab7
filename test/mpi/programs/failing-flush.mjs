// Flushes of this rank fail: the port answers every flush with the failure that a driver would give.
import { NativeNetwork } from '../../../dist/devices/native/network.js';
import { NetOutcome } from '../../../dist/devices/network/port.js';

/** Call it before the runtime is created. */
export function failFlushes() {
  const { flush, poll } = NativeNetwork.prototype;
  const flushes = new Set();
  NativeNetwork.prototype.flush = function (space, scope, request) {
    flushes.add(request);
    flush.call(this, space, scope, request);
  };
  NativeNetwork.prototype.poll = function (sink) {
    return poll.call(this, {
      message: (rank, bytes) => sink.message(rank, bytes),
      done: (request, outcome, start, end) =>
        sink.done(request, flushes.delete(request) ? NetOutcome.flush : outcome, start, end),
      lost: (rank) => sink.lost(rank),
    });
  };
}
