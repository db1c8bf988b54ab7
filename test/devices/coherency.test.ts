// The coherency table: every state with every event, and every combination of copies that can be reached.
import { describe, expect, it } from 'vitest';
import { CopyEvent, CopyState, ILLEGAL, nextState } from '../../devices/memory/coherency.js';

const { invalid, arriving, shared, owned } = CopyState;

/** What must happen, in words: event -> state -> next state. States that are not listed are illegal. */
const TABLE: Readonly<
  Record<keyof typeof CopyEvent, Readonly<Partial<Record<keyof typeof CopyState, number>>>>
> = {
  fetch: { invalid: arriving },
  arrived: { invalid, arriving: shared, shared, owned },
  read: { arriving, shared, owned },
  write: { invalid: owned, arriving: owned, shared: owned, owned },
  remoteWrite: { invalid, arriving: invalid, shared: invalid, owned: invalid },
  yieldOwnership: { owned: shared },
  takeOwnership: { arriving: owned, shared: owned, owned },
  drop: { invalid, shared: invalid },
  fail: { invalid, arriving: invalid, shared: invalid, owned: invalid },
};

const stateNames = Object.keys(CopyState) as (keyof typeof CopyState)[];
const eventNames = Object.keys(CopyEvent) as (keyof typeof CopyEvent)[];

describe('next state of a copy', () => {
  it.each(eventNames.flatMap((event) => stateNames.map((state) => [state, event] as const)))(
    '%s on %s',
    (state, event) => {
      const expected = TABLE[event][state] ?? ILLEGAL;
      expect(nextState(CopyState[state], CopyEvent[event])).toBe(expected);
    },
  );

  it('covers every state and event there is', () => {
    expect(stateNames).toHaveLength(4);
    expect(eventNames).toHaveLength(9);
    expect(new Set(Object.values(CopyEvent)).size).toBe(9);
  });
});

// --- Several copies of one datum -------------------------------------------------------------------------------

/**
 * One datum with a copy in each space, driven by everything the runtime does to it: transfers that may be overtaken by
 * writes before they end, writes, hand-over of ownership, eviction, failure of a transfer. `version` is the
 * newest; a copy knows which version its bytes will hold; a transfer under way knows which version it carries.
 */
interface World {
  readonly state: readonly number[];
  /** Version of the bytes of each copy, relative to the newest: 0 is current, 1 older. */
  readonly age: readonly number[];
  /** Transfers under way by destination: age of what they carry, or -1. */
  readonly incoming: readonly number[];
}

function apply(world: World, s: number, event: number): World | undefined {
  const next = nextState(world.state[s], event);
  if (next === ILLEGAL) return undefined;
  return { ...world, state: world.state.map((old, i) => (i === s ? next : old)) };
}

function must(world: World | undefined, what: string): World {
  if (world === undefined) throw new Error(`illegal transition: ${what}`);
  return world;
}

function withIncoming(world: World, s: number, age: number): World {
  return { ...world, incoming: world.incoming.map((old, i) => (i === s ? age : old)) };
}

function withAge(world: World, s: number, age: number): World {
  return { ...world, age: world.age.map((old, i) => (i === s ? age : old)) };
}

const valid = (state: number): boolean => state !== invalid;

/** Every step the runtime may take from here. */
function* steps(world: World): Generator<readonly [string, World]> {
  const spaces = world.state.map((_, s) => s);
  const owner = world.state.indexOf(owned);
  for (const s of spaces) {
    // Writes: the runtime orders them behind a transfer into the same copy, which ends before (its bytes are lost).
    let written = must(apply(world, s, CopyEvent.write), `write ${s}`);
    for (const other of spaces) {
      if (other !== s)
        written = must(apply(written, other, CopyEvent.remoteWrite), `remote write ${other}`);
    }
    const ages = written.age.map((age, i) => (i === s ? 0 : Math.min(age + 1, 1)));
    const incoming = written.incoming.map((age) => (age < 0 ? -1 : Math.min(age + 1, 1)));
    yield [`write ${s}`, { ...written, age: ages, incoming }];

    // Transfers: into an invalid copy from any other that is valid; one under way per copy (its block is pinned).
    if (!valid(world.state[s]) && world.incoming[s] < 0) {
      for (const from of spaces) {
        if (!valid(world.state[from])) continue;
        const read = must(apply(world, from, CopyEvent.read), `read ${from}`);
        const fetching = must(apply(read, s, CopyEvent.fetch), `fetch ${s}`);
        yield [
          `fetch ${from} -> ${s}`,
          withIncoming(withAge(fetching, s, world.age[from]), s, world.age[from]),
        ];
      }
    }
    if (world.incoming[s] >= 0) {
      const over = withIncoming(world, s, -1);
      // The directory ends a transfer with `arrived`, whatever has happened to the copy meanwhile.
      yield [`arrived ${s}`, must(apply(over, s, CopyEvent.arrived), `arrived ${s}`)];
      if (world.incoming[s] === 0 && world.state[s] !== owned) {
        yield [`failed ${s}`, must(apply(over, s, CopyEvent.fail), `fail ${s}`)];
      }
    }
    // Eviction: what is not under way may be dropped unless it keeps the value; the owner hands over first.
    if (world.state[s] === shared && world.incoming[s] < 0) {
      yield [`drop ${s}`, must(apply(world, s, CopyEvent.drop), `drop ${s}`)];
      if (owner >= 0) {
        const yielded = must(apply(world, owner, CopyEvent.yieldOwnership), `yield ${owner}`);
        yield [
          `hand over ${owner} -> ${s}`,
          must(apply(yielded, s, CopyEvent.takeOwnership), `take ${s}`),
        ];
      }
    }
  }
}

function check(world: World, story: string): void {
  const owners = world.state.filter((state) => state === owned).length;
  const holders = world.state.filter(valid).length;
  if (holders > 0 && owners !== 1)
    throw new Error(`${owners} owners of ${holders} copies after ${story}`);
  world.state.forEach((state, s) => {
    if (!valid(state)) return;
    // Whoever is not invalid holds the newest version, now or when what is on its way has arrived.
    if (world.age[s] !== 0) throw new Error(`the copy in space ${s} is out of date after ${story}`);
    if (state === arriving && world.incoming[s] !== 0) {
      throw new Error(`nothing current is on its way to space ${s} after ${story}`);
    }
  });
}

describe.each([2, 3, 4])('all reachable states of %i copies', (spaces) => {
  it('have one owner while there is a value, and no copy in use is out of date', () => {
    const fresh: World = {
      state: new Array<number>(spaces).fill(invalid),
      age: new Array<number>(spaces).fill(1),
      incoming: new Array<number>(spaces).fill(-1),
    };
    const key = (world: World): string => JSON.stringify([world.state, world.age, world.incoming]);
    const seen = new Set([key(fresh)]);
    const open: (readonly [World, string])[] = [[fresh, 'birth']];
    for (let at = open.pop(); at !== undefined; at = open.pop()) {
      const [world, story] = at;
      check(world, story);
      for (const [step, next] of steps(world)) {
        if (seen.has(key(next))) continue;
        seen.add(key(next));
        open.push([next, story.length > 300 ? `... ${step}` : `${story}, ${step}`]);
      }
    }
    expect(seen.size).toBeGreaterThan(spaces === 2 ? 10 : 100);
  });
});
