// The network port of a rank whose neighbours never answer: what it sends is gone, and nothing comes. So one rank among thousands
// can insert its tasks in a process of its own.
import { type NetworkPort, VisibleTo } from '../devices/network/port.js';

const nothing = (): void => {};

export class LonePort implements NetworkPort {
  readonly rank: number;
  readonly size: number;
  readonly longestMessage = 65_536;
  readonly library = '';
  readonly gpuAware = true;
  readonly crowded = false;
  readonly hostOnly = false;
  readonly mappable = (): boolean => false;
  readonly reachable = (): boolean => true;
  readonly ordering = (): number => VisibleTo.none;
  readonly setWays: () => void = nothing;
  readonly post = (): boolean => true;
  readonly commanded: () => void = nothing;
  readonly beginEra: () => void = nothing;
  readonly want: () => void = nothing;
  readonly declineBefore: () => void = nothing;
  readonly withdraw: () => void = nothing;
  readonly refuse: () => void = nothing;
  readonly refuseCalls: () => void = nothing;
  readonly expect: () => void = nothing;
  readonly abandon: () => void = nothing;
  readonly publish: () => void = nothing;
  readonly setQuiet: () => void = nothing;
  readonly poll = (): boolean => false;
  readonly due = (): boolean => false;
  readonly counters = (): ReturnType<NetworkPort['counters']> => {
    return { messagesSent: 0, messagesReceived: 0, flushes: 0 };
  };
  readonly close = async (): Promise<void> => {};

  constructor(rank: number, size: number) {
    this.rank = rank;
    this.size = size;
  }
}
