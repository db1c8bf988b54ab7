// Values that code of the program throws, as bytes for another thread.
// Invariant: neither function throws, whatever the value. An error keeps its words, its stack, its code and its causes; a value that
// cannot be copied keeps its words only.
import { deserialize, serialize } from 'node:v8';
import { describeThrown, isError } from '../trace/thrown.js';
import { type ErrorDetails, HeadraceError, tailOf } from './errors.js';

/** Causes of causes that are kept. */
const MOST_CAUSES = 8;

type Thrown =
  | { readonly kind: 'value'; readonly value: unknown }
  | { readonly kind: 'text'; readonly text: string }
  | {
      readonly kind: 'error';
      readonly name: string;
      readonly message: string;
      readonly stack: string;
      /** Properties with plain values, such as `code`. */
      readonly facts: Readonly<Record<string, unknown>>;
      /** Of a HeadraceError, without its cause. */
      readonly details: ErrorDetails | undefined;
      readonly cause: Thrown | undefined;
    };

const ERRORS: Readonly<Record<string, ErrorConstructor>> = {
  EvalError,
  RangeError,
  ReferenceError,
  SyntaxError,
  TypeError,
  URIError,
};

/** The bytes of a thrown value. */
export function encodeThrown(value: unknown): Uint8Array {
  try {
    return serialize(plain(value, 0));
  } catch {
    return serialize({ kind: 'text', text: describeThrown(value) } satisfies Thrown);
  }
}

/** The thrown value of which `encodeThrown` made the bytes; an error is a new one. */
export function decodeThrown(bytes: Uint8Array): unknown {
  return revived(deserialize(bytes) as Thrown);
}

function plain(value: unknown, depth: number): Thrown {
  try {
    if (!isError(value)) {
      serialize(value);
      return { kind: 'value', value };
    }
    const facts: Record<string, unknown> = {};
    for (const [key, fact] of Object.entries(value)) {
      if (fact === null || ['string', 'number', 'boolean'].includes(typeof fact)) facts[key] = fact;
    }
    const { details } = value as { readonly details?: ErrorDetails };
    const { cause: _, ...rest } = details ?? {};
    const isOurs = value.name === 'HeadraceError' && typeof facts['code'] === 'string';
    return {
      kind: 'error',
      name: String(value.name),
      message: describeThrown(value),
      stack: String(value.stack),
      facts,
      details: isOurs ? (deserialize(serialize(rest)) as ErrorDetails) : undefined,
      cause:
        value.cause === undefined || depth >= MOST_CAUSES
          ? undefined
          : plain(value.cause, depth + 1),
    };
  } catch {
    return { kind: 'text', text: describeThrown(value) };
  }
}

function revived(thrown: Thrown): unknown {
  if (thrown.kind === 'value') return thrown.value;
  if (thrown.kind === 'text') return new Error(thrown.text);
  const { name, message, stack, facts, details } = thrown;
  const cause = thrown.cause === undefined ? undefined : revived(thrown.cause);
  if (details !== undefined) {
    const tail = tailOf(details);
    const words = message.endsWith(tail) ? message.slice(0, message.length - tail.length) : message;
    const error = new HeadraceError(String(facts['code']), words, { ...details, cause });
    error.stack = stack;
    return error;
  }
  const type = Object.hasOwn(ERRORS, name) ? ERRORS[name] : Error;
  const error = new type(message, cause === undefined ? undefined : { cause });
  Object.defineProperties(error, {
    name: { value: name, configurable: true, writable: true },
    stack: { value: stack, configurable: true, writable: true },
  });
  return Object.assign(error, facts);
}
