// Hides system packages from this process and its children: inside a mount namespace of its own an overlay lies over
// /usr, in which the packages' files are removed. Compilers, the dynamic linker and PATH see a machine without these
// packages. Other processes see no difference. A replacement for `apt-get` brings the files back. Linux, as root.
import { spawnSync } from 'node:child_process';
import { chmodSync, mkdirSync, readdirSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { systemPackages } from './system-packages.mjs';

/** Files of the packages, below /usr. `*` stands for anything within a name. */
export const hideable = {
  mpi: [
    ...['bin/*openmpi*', 'bin/ompi*', 'bin/orte*', 'bin/opal*', 'bin/prte*'],
    // These files may belong to either library.
    ...['bin/mpirun', 'bin/mpiexec', 'bin/mpicc', 'bin/mpic++', 'bin/mpicxx', 'bin/mpiCC'],
    ...[
      'lib/*/libmpi.so*',
      'lib/*/libmpi_*',
      'lib/*/libmpi++*',
      'lib/*/libopen-*',
      'lib/*/openmpi',
    ],
    ...['lib/*/pkgconfig/ompi*', 'lib/*/pkgconfig/mpi*', 'include/*/openmpi', 'include/*/mpi'],
  ],
  mpich: [
    ...['bin/*mpich*', 'bin/*hydra*', 'lib/*/libmpich*', 'lib/*/mpich', 'lib/*/pkgconfig/*mpich*'],
    'include/*/mpich',
  ],
  openblas: ['lib/*/libopenblas*', 'lib/*/openblas*', 'lib/*/libblas*', 'lib/*/liblapack*'],
  chromium: ['bin/chromium*', 'bin/google-chrome*', 'lib/chromium*'],
};

/** Paths below `root` that match a pattern, relative to it. */
export function matches(root, pattern) {
  let found = [''];
  for (const part of pattern.split('/')) {
    const words = part.split('*').map((word) => word.replace(/[.+?^${}()|[\]\\]/g, '\\$&'));
    const expression = new RegExp(`^${words.join('.*')}$`);
    found = found.flatMap((folder) => {
      let names = [];
      try {
        names = readdirSync(path.join(root, folder));
      } catch {
        // not a folder
      }
      return names.filter((name) => expression.test(name)).map((name) => path.join(folder, name));
    });
  }
  return found;
}

/** The missing precondition for hiding packages; undefined if there is none. */
export function whyNotHidden() {
  if (process.platform !== 'linux') return 'the mount namespaces of Linux';
  const attempt = 'mount -t tmpfs none /mnt && mkdir /mnt/u /mnt/w && mount -t overlay none';
  const options = '-o lowerdir=/usr,upperdir=/mnt/u,workdir=/mnt/w /usr && rm /usr/bin/env';
  const { status } = spawnSync('unshare', ['-m', 'sh', '-c', `${attempt} ${options}`], {
    stdio: 'ignore',
  });
  return status === 0 ? undefined : 'the right to mount file systems (root)';
}

/**
 * Hides all of `hideable`, and puts an apt-get that brings packages back into `scratch`/bin. To be called inside a mount
 * namespace of its own.
 *
 * @param {string} scratch an empty folder
 */
export function hide(scratch) {
  if (realpathSync('/lib') !== '/usr/lib') throw new Error('/lib is not part of /usr here');
  mount('-t', 'tmpfs', 'headrace', scratch);
  for (const name of ['upper', 'work', 'real', 'bin', 'packages'])
    mkdirSync(path.join(scratch, name));
  mount('--bind', '/usr', path.join(scratch, 'real'));
  const layers = `lowerdir=/usr,upperdir=${scratch}/upper,workdir=${scratch}/work`;
  mount('-t', 'overlay', 'headrace', '-o', layers, '/usr');
  const gone = new Set();
  for (const [name, patterns] of Object.entries(hideable)) {
    const files = patterns.flatMap((pattern) => matches('/usr', pattern));
    for (const file of files) {
      gone.add(file);
      rmSync(path.join('/usr', file), { recursive: true, force: true });
    }
    for (const each of systemPackages[name].packages)
      writeFileSync(
        path.join(scratch, 'packages', each),
        files.map((file) => `${file}\n`).join(''),
      );
  }
  writeApt(scratch);
  return gone.size;
}

/** An apt-get that knows only the hidden packages, and brings them back instead of fetching them. */
function writeApt(scratch) {
  const file = path.join(scratch, 'bin', 'apt-get');
  writeFileSync(
    file,
    `#!/bin/sh
case "$1" in
  update) exit 0 ;;
  install) shift ;;
  *) echo "E: Invalid operation $1" >&2; exit 100 ;;
esac
for word in "$@"; do
  case "$word" in -*) continue ;; esac
  list="${scratch}/packages/$word"
  [ -f "$list" ] || { echo "E: Unable to locate package $word" >&2; exit 100; }
  while read -r name; do
    [ -e "/usr/$name" ] || ln -sf "${scratch}/real/$name" "/usr/$name"
  done <"$list"
done
`,
  );
  chmodSync(file, 0o755);
}

function mount(...words) {
  const { status, stderr } = spawnSync('mount', words, { encoding: 'utf8' });
  if (status !== 0) throw new Error(`mount ${words.join(' ')}: ${stderr}`);
}
