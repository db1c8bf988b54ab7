// A lock file that names its holder, so that two set-ups of one checkout never build at the same time.
// Invariant: the lock of a dead holder is taken over; the lock of a live holder is never broken.
import {
  linkSync,
  mkdirSync,
  readFileSync,
  rmdirSync,
  rmSync,
  statSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs';
import path from 'node:path';

const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/** Start time of a process, in the kernel's own unit; '' without /proc. It distinguishes processes with the same pid. */
function processBirth(pid) {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    return stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19] ?? '';
  } catch {
    return '';
  }
}

function isAlive(holder) {
  try {
    process.kill(holder.pid, 0);
  } catch (error) {
    if (error.code === 'ESRCH') return false;
  }
  return holder.birth === '' || processBirth(holder.pid) === holder.birth;
}

/** The holder; undefined when there is none, null when the file is damaged. */
function readHolder(file) {
  let text;
  try {
    text = readFileSync(file, 'utf8');
  } catch {
    return undefined;
  }
  try {
    const holder = JSON.parse(text);
    return typeof holder?.pid === 'number' ? holder : null;
  } catch {
    return null;
  }
}

/** The holder is no more. Where there is no holder, the next one may come at any time: that lock must not be removed. */
const isDead = (holder) => holder === null || (holder !== undefined && !isAlive(holder));

/** Creates the lock with its content in one step, so that no process reads an incomplete lock. */
function tryCreate(file) {
  const draft = `${file}.${process.pid}`;
  writeFileSync(draft, JSON.stringify({ pid: process.pid, birth: processBirth(process.pid) }));
  try {
    linkSync(draft, file);
    return true;
  } catch (error) {
    if (error.code === 'EEXIST') return false;
    throw error;
  } finally {
    unlinkSync(draft);
  }
}

/**
 * Removes a dead holder's lock. Two waiting processes may both see the dead holder. The guard folder admits only one of
 * them, and it checks again, so it cannot remove the lock of a new holder.
 */
function removeIfDead(file) {
  const guard = `${file}.takeover`;
  try {
    mkdirSync(guard);
  } catch {
    try {
      if (Date.now() - statSync(guard).mtimeMs > 10_000) rmdirSync(guard);
    } catch {
      // another process was faster
    }
    return;
  }
  try {
    const holder = readHolder(file);
    if (isDead(holder)) rmSync(file, { force: true });
  } finally {
    rmdirSync(guard);
  }
}

/**
 * Runs `work` while holding the lock and releases it afterwards, also when the process gets a signal.
 *
 * @template T
 * @param {string} file
 * @param {() => Promise<T> | T} work
 * @param {{ onWait?: (pid: number) => void, pollMs?: number, timeoutMs?: number }} [options]
 * @returns {Promise<T>}
 */
export async function withLock(file, work, options = {}) {
  const { onWait = () => {}, pollMs = 200, timeoutMs = 30 * 60_000 } = options;
  mkdirSync(path.dirname(file), { recursive: true });
  const deadline = Date.now() + timeoutMs;
  let told = false;
  while (!tryCreate(file)) {
    const holder = readHolder(file);
    if (holder === undefined) continue; // given back since
    if (isDead(holder)) {
      removeIfDead(file);
      await sleep(5);
      continue;
    }
    if (!told) onWait(holder.pid);
    told = true;
    if (Date.now() > deadline)
      throw new Error(`lock ${file} is still held by process ${holder.pid}`);
    await sleep(pollMs);
  }
  const release = () => {
    if (readHolder(file)?.pid === process.pid) rmSync(file, { force: true });
  };
  process.once('exit', release);
  try {
    return await work();
  } finally {
    process.removeListener('exit', release);
    release();
  }
}
