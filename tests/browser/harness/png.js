// PNG with a palette: a third of the size for pictures with few colours, such as those of pages.
import { crc32 as crc, deflateSync } from "node:zlib";

const colours = 256;

/** Returns a picture's pixels as RGB, decoded by the browser. */
async function pixels(page, picture) {
  const { width, height, rgba } = await page.evaluate(async (base64) => {
    const bytes = Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
    const bitmap = await createImageBitmap(new Blob([bytes], { type: "image/png" }));
    const context = new OffscreenCanvas(bitmap.width, bitmap.height).getContext("2d");
    context.drawImage(bitmap, 0, 0);
    const { data } = context.getImageData(0, 0, bitmap.width, bitmap.height);
    let text = "";
    for (let at = 0; at < data.length; at += 32768) text += String.fromCharCode(...data.subarray(at, at + 32768));
    return { width: bitmap.width, height: bitmap.height, rgba: btoa(text) };
  }, picture.toString("base64"));
  return { width, height, rgba: Buffer.from(rgba, "base64") };
}

/** Returns the most common colours, and the nearest of them for every colour. Only the upper 6 bits count. */
function palette(rgba) {
  const counts = new Map();
  for (let at = 0; at < rgba.length; at += 4) {
    const key = ((rgba[at] >> 2) << 12) | ((rgba[at + 1] >> 2) << 6) | (rgba[at + 2] >> 2);
    const seen = counts.get(key);
    if (seen) seen.count++;
    else counts.set(key, { count: 1, rgb: [rgba[at], rgba[at + 1], rgba[at + 2]] });
  }
  const chosen = [...counts.values()].sort((a, b) => b.count - a.count).slice(0, colours).map(({ rgb }) => rgb);
  const distance = (a, b) => (a[0] - b[0]) ** 2 + (a[1] - b[1]) ** 2 + (a[2] - b[2]) ** 2;
  const nearest = ({ rgb }) => chosen.reduce((best, one, at) => (distance(one, rgb) < distance(chosen[best], rgb) ? at : best), 0);
  return { chosen, index: new Map([...counts].map(([key, colour]) => [key, nearest(colour)])) };
}

/** Builds a chunk (RFC 2083 §3.2): length, type, data, checksum. */
function chunk(type, data) {
  const body = Buffer.concat([Buffer.from(type, "latin1"), data]);
  const ends = [Buffer.alloc(4), Buffer.alloc(4)];
  ends[0].writeUInt32BE(data.length);
  ends[1].writeUInt32BE(crc(body));
  return Buffer.concat([ends[0], body, ends[1]]);
}

/** Returns `picture`, a PNG, with at most 256 colours. */
export async function encode(page, picture) {
  const { width, height, rgba } = await pixels(page, picture);
  const { chosen, index } = palette(rgba);
  const rows = Buffer.alloc((width + 1) * height);
  for (let at = 0, out = 0; at < rgba.length; at += 4) {
    if (out % (width + 1) === 0) out++;
    rows[out++] = index.get(((rgba[at] >> 2) << 12) | ((rgba[at + 1] >> 2) << 6) | (rgba[at + 2] >> 2));
  }
  const header = Buffer.alloc(13);
  header.writeUInt32BE(width, 0);
  header.writeUInt32BE(height, 4);
  header.set([8, 3, 0, 0, 0], 8);
  const signature = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]);
  const parts = [chunk("IHDR", header), chunk("PLTE", Buffer.from(chosen.flat())), chunk("IDAT", deflateSync(rows, { level: 9 })), chunk("IEND", Buffer.alloc(0))];
  return Buffer.concat([signature, ...parts]);
}
