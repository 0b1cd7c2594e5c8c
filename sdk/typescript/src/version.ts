/** VERSION is that of this package, and of the Cove that it was made for. */
export const VERSION = "0.1.0";

/**
 * fits reports whether a server can be talked to: versions as semver has them,
 * the same major one, and before 1.0 the same minor one. A build that has no such
 * version, such as one from a clone, fits.
 */
export function fits(server: string, client: string = VERSION): boolean {
  const theirs = parse(server);
  const ours = parse(client);
  if (!theirs || !ours) return true;
  return theirs.major === ours.major && (ours.major > 0 || theirs.minor === ours.minor);
}

function parse(text: string): { major: number; minor: number } | undefined {
  const found = /^v?(\d{1,6})\.(\d{1,6})\.\d{1,6}(?:[-+].*)?$/.exec(text);
  return found ? { major: Number(found[1]), minor: Number(found[2]) } : undefined;
}
