// Pictures out of a sandbox: known by their first bytes, and shown only if they are
// not too large to be drawn. A small file can be a picture of any size.

const most = 32e6; // pixels: 128 MB when they are drawn
const longestSide = 32_000;

export interface Picture {
  type: string;
  width: number;
  height: number;
}

// known returns what a picture says of itself, or undefined where it is none.
export function known(bytes: Uint8Array): Picture | undefined {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  for (const read of [png, gif, webp, jpeg]) {
    try {
      const found = read(view);
      if (found) return found;
    } catch (fault) {
      if (!(fault instanceof RangeError)) throw fault; // it ends too early
    }
  }
  return undefined;
}

export const fits = ({ width, height }: Picture): boolean =>
  width > 0 && height > 0 && width <= longestSide && height <= longestSide && width * height <= most;

function png(v: DataView): Picture | undefined {
  if (v.getUint32(0) !== 0x89504e47 || v.getUint32(12) !== 0x49484452) return undefined;
  return { type: "image/png", width: v.getUint32(16), height: v.getUint32(20) };
}

// gif takes the largest of the screen and its frames, each of which is drawn.
function gif(v: DataView): Picture | undefined {
  if (v.getUint32(0) !== 0x47494638) return undefined;
  const all = { type: "image/gif", width: v.getUint16(6, true), height: v.getUint16(8, true) };
  const table = (flags: number): number => (flags & 0x80 ? 3 * 2 ** ((flags & 7) + 1) : 0);
  const blocks = (from: number): number => {
    let at = from;
    while (v.getUint8(at) !== 0) at += v.getUint8(at) + 1;
    return at + 1;
  };
  for (let at = 13 + table(v.getUint8(10)); at < v.byteLength; ) {
    const kind = v.getUint8(at);
    if (kind === 0x2c) {
      if (at + 10 > v.byteLength) break; // cut short: no more is drawn
      all.width = Math.max(all.width, v.getUint16(at + 1, true) + v.getUint16(at + 5, true));
      all.height = Math.max(all.height, v.getUint16(at + 3, true) + v.getUint16(at + 7, true));
      at = after(() => blocks(at + 11 + table(v.getUint8(at + 9))), v);
    } else if (kind === 0x21) {
      at = after(() => blocks(at + 2), v);
    } else {
      break;
    }
  }
  return all;
}

// after is where the next part begins; one that is cut short is the last.
function after(next: () => number, v: DataView): number {
  try {
    return next();
  } catch {
    return v.byteLength;
  }
}

function webp(v: DataView): Picture | undefined {
  if (v.getUint32(0) !== 0x52494646 || v.getUint32(8) !== 0x57454250) return undefined;
  const three = (at: number): number => v.getUint16(at, true) + (v.getUint8(at + 2) << 16) + 1;
  switch (v.getUint32(12)) {
    case 0x56503858: // VP8X
      return { type: "image/webp", width: three(24), height: three(27) };
    case 0x5650384c: { // VP8L
      const bits = v.getUint32(21, true);
      return { type: "image/webp", width: (bits & 0x3fff) + 1, height: ((bits >>> 14) & 0x3fff) + 1 };
    }
    case 0x56503820: // VP8
      return { type: "image/webp", width: v.getUint16(26, true) & 0x3fff, height: v.getUint16(28, true) & 0x3fff };
  }
  return undefined;
}

// jpeg looks for the frame's header; of several, the largest counts.
function jpeg(v: DataView): Picture | undefined {
  if (v.getUint16(0) !== 0xffd8) return undefined;
  let found: Picture | undefined;
  for (let at = 2; at + 9 <= v.byteLength; ) {
    if (v.getUint8(at) !== 0xff) {
      at++; // what is drawn, or filled up with
      continue;
    }
    const marker = v.getUint8(at + 1);
    if (marker === 0xff || marker === 0 || marker === 1 || (marker >= 0xd0 && marker <= 0xd8)) {
      at += marker === 0xff ? 1 : 2;
      continue;
    }
    if (marker === 0xd9) break;
    if (marker >= 0xc0 && marker <= 0xcf && marker !== 0xc4 && marker !== 0xc8 && marker !== 0xcc) {
      const one = { type: "image/jpeg", width: v.getUint16(at + 7), height: v.getUint16(at + 5) };
      if (!found || one.width * one.height > found.width * found.height) found = one;
    }
    at += 2 + v.getUint16(at + 2);
  }
  return found;
}

const inside = /^data:image\/(?:png|jpeg|gif|webp);base64,([A-Za-z0-9+/=\s]+)$/;

// pixelsOf returns how many a data: URL draws, or undefined where nobody knows.
function pixelsOf(url: string): number | undefined {
  const [, text] = inside.exec(url) ?? [];
  if (text === undefined) return undefined;
  const found = fromBase64(text);
  return found && fits(found) ? found.width * found.height : undefined;
}

export function fromBase64(text: string): Picture | undefined {
  try {
    return known(Uint8Array.from(atob(text.replace(/\s/g, "")), (c) => c.charCodeAt(0)));
  } catch {
    return undefined; // it is no base64
  }
}

// bounded reports whether all pictures within a document are known not to be too
// large together. It is never shown, so that nothing in it is fetched or drawn.
function bounded(page: Document): boolean {
  let pixels = 0;
  if ([...page.childNodes].some((n) => n.nodeType === Node.PROCESSING_INSTRUCTION_NODE)) return false; // a style that is elsewhere
  for (const element of page.querySelectorAll("*")) {
    if (element.localName === "style" && styled(element.textContent)) return false;
    for (const { name, value: written } of element.attributes) {
      const value = asURL(written);
      if (name === "style" && styled(value)) return false;
      if (value.includes("\\") && value.includes("(")) return false; // in an SVG others are styles, too
      if (!/data:/i.test(value)) continue;
      const more = /^(?:src|href|xlink:href)$/.test(name) ? pixelsOf(value.trim()) : undefined;
      if (more === undefined || (pixels += more) > most) return false;
    }
  }
  return true;
}

// asURL leaves out what a browser does not read of a URL.
const asURL = (text: string): string => text.replace(/[\t\r\n]/g, "");

// styled reports whether a style may have a picture: \ can stand for any letter.
function styled(text: string | null): boolean {
  const css = asURL(text ?? "");
  return /url|image|\\/i.test(css) && /data|\\/i.test(css);
}

const mostElements = 1e6; // that are drawn

// expanded returns how many elements an SVG draws: what an element names, such as a
// group that it uses or a pattern that fills it, is drawn once more for it. Ten in each
// of ten, nine times, are more than any browser ends with.
function expanded(page: Document): number {
  const sizes = new Map<Element, number>();
  const size = (e: Element): number => {
    const found = sizes.get(e);
    if (found !== undefined) return found;
    sizes.set(e, Infinity); // what names itself has no end
    let all = 1;
    for (const child of e.children) all += size(child);
    for (const name of namedBy(e)) {
      const other = page.getElementById(name);
      if (other) all += size(other);
    }
    sizes.set(e, all);
    return all;
  };
  try {
    return size(page.documentElement);
  } catch (fault) {
    if (fault instanceof RangeError) return Infinity; // they name each other in too long a row
    throw fault;
  }
}

function namedBy(e: Element): string[] {
  const names: string[] = [];
  for (const { localName, value } of e.attributes) {
    if (localName === "href" && e.localName !== "a") names.push(value.trim().replace(/^#/, ""));
    for (const [, name] of value.matchAll(/url\(\s*["']?#([^"')]*)/gi)) names.push(name ?? "");
  }
  return names.flatMap((n) => {
    const name = asURL(n).trim();
    return name.includes("%") ? [name, unescaped(name)] : [name];
  });
}

function unescaped(name: string): string {
  try {
    return decodeURIComponent(name);
  } catch {
    return name;
  }
}

// drawable reports whether an SVG can be shown as a picture: as one it runs no script
// and fetches nothing, but it draws what it has inside.
export function drawable(svg: string): boolean {
  const page = new DOMParser().parseFromString(svg, "image/svg+xml");
  return page.querySelector("parsererror") === null && bounded(page) && expanded(page) <= mostElements;
}

// Kept is what a frame without script and without a way to fetch can hold.
export interface Kept {
  reaches?: string; // an element by which the browser would connect all the same
  pictures: boolean; // those inside may be drawn
}

// look parses a page as the frame would, whose scripting is off as well. For links and
// frames a browser connects before anything is fetched, where no policy is asked;
// templates can hold some that are not found here, and framesets drop some that a
// browser has seen already. By a meta it is told to look the names in links up.
export function look(html: string): Kept {
  const page = new DOMParser().parseFromString(html, "text/html");
  const reaches = page.querySelector("link, template, iframe, frame, frameset, object, embed, fencedframe, portal, meta[http-equiv*=dns i]")?.localName;
  return { ...(reaches && { reaches }), pictures: bounded(page) };
}
