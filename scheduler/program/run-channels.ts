// Events of runs for observers that did not start them: the events of `run.events`, on channels of
// node:diagnostics_channel. A channel without subscribers costs nothing.
import { type Channel, channel } from 'node:diagnostics_channel';

/**
 * Channels of all runs in this process. Each message is an object with `run` (the handle) and `name`, and
 * `headrace:run:start`: nothing more; `headrace:run:progress`: `status`; `headrace:run:end`: `report`;
 * `headrace:run:error`: `error`.
 */
export const runChannels: {
  readonly start: Channel;
  readonly progress: Channel;
  readonly end: Channel;
  readonly error: Channel;
} = {
  start: channel('headrace:run:start'),
  progress: channel('headrace:run:progress'),
  end: channel('headrace:run:end'),
  error: channel('headrace:run:error'),
};
