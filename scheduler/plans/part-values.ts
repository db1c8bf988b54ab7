// Values of the open parameters in a part of a play: those of all slots per iteration, in memory for `room` iterations. If more
// iterations come while the part is under way, their values take the place of those that are over.
import { guards } from '../../devices/guards.js';

export class PartValues {
  readonly values: Float64Array;
  private readonly slots: number;
  private readonly room: number;
  private readonly given: (slot: number, iteration: number) => number;

  constructor(
    slots: number,
    room: number,
    given: (slot: number, iteration: number) => number = () => 0,
  ) {
    this.values = new Float64Array(Math.max(1, slots * room));
    this.slots = slots;
    this.room = room;
    this.given = given;
  }

  /** Takes the values of the iterations from `from` on, below `to`. */
  take(from: number, to: number): void {
    const { slots, values } = this;
    for (let i = from; i < to; i++) {
      const first = this.placeOf(i);
      for (let s = 0; s < slots; s++) values[first + s] = this.given(s, i);
    }
  }

  /** The most iterations that the part may have, while `over` are over. */
  limit(over: number): number {
    return guards.playRoom ? over + this.room : Number.POSITIVE_INFINITY;
  }

  at(iteration: number, slot: number): number {
    return this.values[this.placeOf(iteration) + slot];
  }

  private placeOf(iteration: number): number {
    return (iteration % this.room) * this.slots;
  }
}
