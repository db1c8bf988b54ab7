// One virtual clock and one queue of events for everything that is simulated together: the queues, engines and
// messages of all ranks.
//
// Each rank's engine has a clock of its own, which runs ahead of the world's while the engine works. An engine that polls
// lets the world run to its own time; other engines get their turns meanwhile. So engines nest on
// one stack, each at most once, and only to a limited depth (backend.ts).
// Invariants: events happen in the order of their times; an engine is never entered while it is on the stack; while
// there are events, and the world drives itself, some code will let them happen.
import { EventQueue } from './event-queue.js';

/** The owner of an event. */
export interface EventOwner {
  /** The event with this number (counted from the owner's first) happens now. */
  happens(event: number): void;
}

/** A rank from the view of the world. */
export interface Inhabitant {
  /** No event can happen any more, unless the rank asks others for their calls. */
  worldIsStill(): void;
}

/** Turns of engines between two turns of the event loop, on which promises are served. */
const TURNS = 16;

export class World {
  time = 0;
  /** Engines that let the world run from their polls, one within the other. */
  nested = 0;
  /** Engine turns so far. */
  turns = 0;
  /** Turns of engines that are to come. */
  private turnsDue = 0;
  /** Events so far, turns included. */
  private steps = 0;
  private readonly events: EventQueue = new EventQueue();
  private readonly owners: (EventOwner | undefined)[] = [];
  private readonly firstOf: number[] = [];
  private readonly inhabitants: Inhabitant[] = [];
  private readonly drivesItself: boolean;
  /** The actions of events without an owner. */
  private readonly actions: ((() => void) | undefined)[] = [];
  private readonly freeIds: number[] = [];
  private kicked = false;
  /** Called when no event can happen any more, unless code outside gives work to an engine. */
  onStill: (() => void) | undefined;
  /** Called when an event throws, outside of any call of the program. Without it the error is that of the event loop. */
  onError: ((error: unknown) => void) | undefined;

  /** With `drivesItself` time runs on the event loop; without, the caller lets it run (`step`). */
  constructor(drivesItself = true) {
    this.drivesItself = drivesItself;
  }

  join(inhabitant: Inhabitant): void {
    this.inhabitants.push(inhabitant);
  }

  /** Gives an owner `count` events of its own; returns the first one's id. */
  reserve(owner: EventOwner | undefined, count: number): number {
    const first = this.events.reserve(count);
    for (let i = 0; i < count; i++) {
      this.owners.push(owner);
      this.firstOf.push(first);
    }
    return first;
  }

  /** Event `id` will happen at `time`. It must not be under way. */
  schedule(id: number, time: number): void {
    this.events.push(id, time);
    this.kick();
  }

  /** The turn of an engine, event `id`, will happen at `time`. It must not be under way. */
  scheduleTurn(id: number, time: number): void {
    this.turnsDue++;
    this.schedule(id, time);
  }

  /** The turn of an engine happens. */
  turnBegins(): void {
    this.turnsDue--;
    this.turns++;
  }

  /** Event `id`, which is under way, will happen at `time` instead. */
  move(id: number, time: number): void {
    this.events.move(id, time);
  }

  /** Does something at `time`, once. */
  at(time: number, action: () => void): void {
    const id = this.freeIds.pop() ?? this.reserve(undefined, 1);
    this.actions[id] = action;
    this.schedule(id, time);
  }

  /** Time of the next event; infinite when there is none. */
  get next(): number {
    return this.events.length === 0 ? Number.POSITIVE_INFINITY : this.events.time;
  }

  /** Events so far that were not turns of engines: the machine's own progress. */
  get moves(): number {
    return this.steps - this.turns;
  }

  /** Whether events other than turns of engines are to come. */
  get isMoving(): boolean {
    return this.events.length > this.turnsDue;
  }

  /** Lets the next event happen; false when there is none. */
  step(): boolean {
    const { events } = this;
    if (events.length === 0) return false;
    if (events.time > this.time) this.time = events.time;
    const id = events.pop();
    this.steps++;
    const owner = this.owners[id];
    if (owner !== undefined) owner.happens(id - this.firstOf[id]);
    else {
      const action = this.actions[id];
      this.actions[id] = undefined;
      this.freeIds.push(id);
      action?.();
    }
    return true;
  }

  /** Lets all events up to `limit` happen. */
  runUntil(limit: number): void {
    const { events } = this;
    while (events.length > 0 && events.time <= limit) this.step();
  }

  /** No event can happen any more: waiting ranks may ask the others. True when an event will happen then. */
  askAround(): boolean {
    for (const inhabitant of this.inhabitants) inhabitant.worldIsStill();
    return this.events.length > 0;
  }

  private kick(): void {
    if (this.kicked || !this.drivesItself) return;
    this.kicked = true;
    setImmediate(() => this.drive());
  }

  private drive(): void {
    const until = this.turns + TURNS;
    try {
      while (this.turns < until && this.step());
    } catch (error) {
      if (this.onError === undefined) throw error;
      this.onError(error);
    }
    this.kicked = false;
    if (this.events.length > 0) this.kick();
    else if (!this.askAround()) this.onStill?.();
  }
}
