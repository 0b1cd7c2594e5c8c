/** VERSION is that of this package, and of the Cove that it was made for. */
export const VERSION = "0.1.0";

/**
 * fits reports whether a server knows the same as this package: versions as semver has
 * them, the same major one, and before 1.0 the same minor one. A build that has no such
 * version, such as one from a clone, fits.
 */
export function fits(server: string, client: string = VERSION): boolean {
  const theirs = parse(server);
  const ours = parse(client);
  if (!theirs || !ours) return true;
  return theirs.major === ours.major && (ours.major > 0 || theirs.minor === ours.minor);
}

function parse(text: string): { major: number; minor: number } | undefined {
  const found = /^v?(\d{1,6})\.(\d{1,6})\.\d{1,6}(?:[-+][0-9A-Za-z.+-]{1,100})?$/.exec(text);
  return found ? { major: Number(found[1]), minor: Number(found[2]) } : undefined;
}

/** Warnings that were given, and how many there are at most: what servers say is their own. */
const warned = new Set<string>();
const maxWarned = 100;

/** warnOnce warns of something, however often it is seen. */
export function warnOnce(text: string): void {
  if (warned.has(text) || warned.size >= maxWarned) return;
  warned.add(text);
  process.emitWarning(text, "VersionWarning");
}
