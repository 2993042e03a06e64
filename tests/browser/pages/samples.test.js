// Every page in every state, also those that are hard to come by in a running server: accessible on a phone and on a
// desktop, light and dark. German, whose words are the longest, must not make a phone scroll sideways.
import test, { after, before } from "node:test";
import assert from "node:assert/strict";
import { launch, violations, viewports, Visitor } from "../harness/chromium.js";
import { names, origin, show } from "../harness/samples.js";

let browser;
before(async () => { browser = await launch(); });
after(() => browser.close());

const pages = await names();

test("the samples are there", () => assert.ok(pages.length >= 30, `${pages.length} pages`));

test("a page that is wrong is found out", async () => {
  const page = await browser.newPage();
  await page.setContent('<title>x</title><img src="x:"><input style="width: 2000px"><p style="color: #aaa">pale</p>');
  const found = (await violations(page)).join("\n");
  for (const rule of ["image-alt", "label", "color-contrast", "scrolls sideways"]) assert.match(found, new RegExp(rule));
  await page.close();
});

for (const name of pages) {
  test(`sample ${name}`, async () => {
    const guest = await Visitor.arrive(browser, origin);
    await show(guest.context);
    await guest.open(`/en/${name}.html`);
    await guest.inspect();
    await guest.page.setViewportSize(viewports[0]);
    await guest.open(`/de/${name}.html`);
    const over = await guest.page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
    assert.ok(over <= 0, `${over} px too wide`);
    await guest.leave();
  });
}
