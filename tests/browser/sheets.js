// `node sheets.js FOLDER`: takes every sample page at both widths, and lays them out on one sheet a theme.
import { mkdir } from "node:fs/promises";
import path from "node:path";
import { launch, themes, viewports } from "./harness/chromium.js";
import { names, serve } from "./harness/samples.js";

const target = path.resolve(process.argv[2] ?? "docs/pages");
// Sheets are half the size of the pages on them: a phone 195 px wide, a desktop 480 px.
const shownWidths = { 390: 195, 1280: 480 };
const looks = {
  light: { paper: "#e4e4e7", ink: "#27272a" },
  dark: { paper: "#000", ink: "#d4d4d8" },
};

/** A picture of each page: `{ name, width, theme, data }`. */
async function takePictures(browser, origin, pages) {
  const pictures = [];
  for (const theme of themes) {
    for (const viewport of viewports) {
      const context = await browser.newContext({ viewport, colorScheme: theme, reducedMotion: "reduce" });
      // A page that sends itself on would be gone before it is seen.
      await context.route("**/assets/post.*", (route) => route.fulfill({ contentType: "text/javascript", body: "" }));
      await context.route("**/.well-known/openid-configuration", (route) => route.fulfill({ json: {} }));
      const page = await context.newPage();
      for (const name of pages) {
        await page.goto(`${origin}/en/${name}.html`);
        const data = await page.screenshot({ fullPage: true });
        pictures.push({ name, width: viewport.width, theme, data: data.toString("base64") });
      }
      await context.close();
    }
  }
  return pictures;
}

const picture = ({ data, width }) => `<img src="data:image/png;base64,${data}" width="${shownWidths[width]}">`;

const sheet = (theme, width, figures) => `<!doctype html><meta charset="utf-8"><style>
  body { margin: 0; padding: 24px; width: ${width}px; background: ${looks[theme].paper}; color: ${looks[theme].ink}; font: 13px system-ui, sans-serif; columns: ${Math.floor(width / 720)}; column-gap: 24px; }
  figure { margin: 0 0 24px; break-inside: avoid; } figcaption { margin: 0 0 6px; }
  div { display: flex; gap: 12px; align-items: flex-start; } img { display: block; border-radius: 6px; }
</style>${figures.map(([name, pair]) => `<figure><figcaption>${name}</figcaption><div>${pair.map(picture).join("")}</div></figure>`).join("")}`;

async function save(browser, html, file) {
  const page = await browser.newPage({ viewport: { width: 100, height: 100 } });
  await page.setContent(html, { waitUntil: "load" });
  await page.locator("body").screenshot({ path: path.join(target, file) });
  await page.close();
}

const pages = await names();
if (!pages.length) throw new Error("no sample pages; `make pages` writes them first");
await mkdir(target, { recursive: true });
const [samples, browser] = await Promise.all([serve(), launch()]);
const pictures = await takePictures(browser, samples.origin, pages);
const of = (name, theme) => pictures.filter((one) => one.name === name && one.theme === theme);
for (const theme of themes) {
  await save(browser, sheet(theme, 2160, pages.map((name) => [name, of(name, theme)])), `${theme}.png`);
}
await browser.close();
await samples.stop();
