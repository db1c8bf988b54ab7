// A package registry on the loopback address that has only the tarballs of a release, so that optional dependencies are
// found as they will be after publishing.
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import path from 'node:path';

/** A registry's description of a package with one version. */
function packument(file, address) {
  const manifest = JSON.parse(
    execFileSync('tar', ['-xzOf', file, 'package/package.json'], { encoding: 'utf8' }),
  );
  const content = readFileSync(file);
  const hash = (kind, encoding) => createHash(kind).update(content).digest(encoding);
  return {
    name: manifest.name,
    'dist-tags': { latest: manifest.version },
    versions: {
      [manifest.version]: {
        ...manifest,
        _id: `${manifest.name}@${manifest.version}`,
        dist: {
          tarball: `${address}/tarballs/${path.basename(file)}`,
          integrity: `sha512-${hash('sha512', 'base64')}`,
          shasum: hash('sha1', 'hex'),
        },
      },
    },
    // Package managers may refuse versions that are only some days old.
    time: { [manifest.version]: '2020-01-01T00:00:00.000Z' },
  };
}

/**
 * Serves tarballs until it is closed.
 *
 * @param {string[]} files
 * @returns {Promise<{ address: string, close: () => Promise<void> }>}
 */
export async function serveRegistry(files) {
  const server = createServer((request, response) => {
    const name = decodeURIComponent(new URL(request.url ?? '/', address).pathname).slice(1);
    const tarball = files.find((file) => `tarballs/${path.basename(file)}` === name);
    if (tarball !== undefined) {
      response.writeHead(200, { 'content-type': 'application/octet-stream' });
      response.end(readFileSync(tarball));
      return;
    }
    const known = packuments.get(name);
    response.writeHead(known === undefined ? 404 : 200, { 'content-type': 'application/json' });
    response.end(JSON.stringify(known ?? { error: 'not found' }));
  });
  await new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(0, '127.0.0.1', resolve);
  });
  const address = `http://127.0.0.1:${server.address().port}`;
  const packuments = new Map(
    files.map((file) => {
      const known = packument(file, address);
      return [known.name, known];
    }),
  );
  return {
    address,
    close: () =>
      new Promise((resolve) => {
        server.closeAllConnections();
        server.close(() => resolve());
      }),
  };
}
