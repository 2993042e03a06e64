// `node sheets.js FOLDER`: takes pictures of every sample page at both widths, and puts them on one sheet per theme.
import { mkdir, writeFile } from "node:fs/promises";
import path from "node:path";
import { launch, themes, viewports } from "./harness/chromium.js";
import { encode } from "./harness/png.js";
import { names, origin, show } from "./harness/samples.js";

const target = path.resolve(process.argv[2] ?? "docs/pages");
/** A phone page is shown at half its size on the sheet, a desktop page smaller. */
const shownWidths = { 390: 195, 1280: 480 };
const sheetWidth = 2160;
const looks = { light: { paper: "#dcdce0", ink: "#27272a" }, dark: { paper: "#000", ink: "#d4d4d8" } };

/** Returns pictures of each page in one theme: a list of `{ width, data }` by page name, without the empty foot of a
 * page. */
async function takePictures(browser, pages, colorScheme) {
  const pictures = new Map(pages.map((name) => [name, []]));
  for (const viewport of viewports) {
    const context = await browser.newContext({ viewport, colorScheme, reducedMotion: "reduce" });
    await show(context);
    const page = await context.newPage();
    for (const name of pages) {
      await page.goto(`${origin}/en/${name}.html`, { waitUntil: "networkidle" });
      const height = await page.locator("main").evaluate((main) => Math.ceil(main.getBoundingClientRect().bottom + scrollY) + 48);
      const data = await page.screenshot({ fullPage: true, clip: { x: 0, y: 0, width: viewport.width, height } });
      pictures.get(name).push({ width: viewport.width, data: data.toString("base64") });
    }
    await context.close();
  }
  return pictures;
}

const image = ({ data, width }) => `<img src="data:image/png;base64,${data}" width="${shownWidths[width]}">`;

const sheet = (pictures, { paper, ink }) => `<!doctype html><meta charset="utf-8"><style>
  body { margin: 0; padding: 24px; width: ${sheetWidth}px; background: ${paper}; color: ${ink}; font: 13px system-ui, sans-serif; columns: 3; column-gap: 24px; }
  figure { margin: 0 0 24px; break-inside: avoid; } figcaption { margin: 0 0 6px; }
  div { display: flex; gap: 12px; align-items: flex-start; } img { display: block; border-radius: 6px; }
</style>${[...pictures].map(([name, both]) => `<figure><figcaption>${name}</figcaption><div>${both.map(image).join("")}</div></figure>`).join("")}`;

const pages = await names();
if (!pages.length) throw new Error("no sample pages; `make pages` writes them first");
await mkdir(target, { recursive: true });
const browser = await launch();
for (const theme of themes) {
  const html = sheet(await takePictures(browser, pages, theme), looks[theme]);
  const page = await browser.newPage({ viewport: { width: sheetWidth, height: 100 } });
  await page.setContent(html, { waitUntil: "load" });
  const picture = await page.locator("body").screenshot();
  await writeFile(path.join(target, `${theme}.png`), await encode(page, picture));
  await page.close();
}
await browser.close();
