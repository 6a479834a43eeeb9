// brushing.mjs: how fast the page of a search follows a brush: node brushing.mjs CHROMIUM PAGE
//
// Drags a brush along each axis of "Which keys lead where" for two seconds. Prints frames a second, and the processor time of
// the page for a frame, which other programs on the machine change less.

import {createRequire} from "node:module";
import {join} from "node:path";

const {chromium} = createRequire(join(process.env.NODE_PATH, "x.js"))("playwright-core");
const [executablePath, file] = process.argv.slice(2), SECONDS = 2;

const browser = await chromium.launch({executablePath, args: ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]});
const page = await browser.newPage({viewport: {width: 1280, height: 900}});
await page.goto(`file://${encodeURI(file)}`);
await page.locator("#lines").scrollIntoViewIfNeeded();
await page.waitForTimeout(1000);
await page.evaluate(() => {
    window.framesDrawn = 0;
    const count = () => { window.framesDrawn++; window.requestAnimationFrame(count); };
    window.requestAnimationFrame(count);
});
const session = await page.context().newCDPSession(page);
await session.send("Performance.enable", {timeDomain: "threadTicks"});
const spent = async () => (await session.send("Performance.getMetrics")).metrics.find((one) => one.name === "TaskDuration").value;

const points = Number((await page.locator("#lines .readout").textContent()).match(/ of ([\d,  ]+)/)[1].replace(/\D/g, ""));
for (const grip of await page.locator("#lines .grip").all()) {
    const box = await grip.boundingBox(), x = box.x + box.width / 2;
    await page.mouse.move(x, box.y + 8);
    await page.mouse.down();
    const before = await spent(), began = Date.now(), first = await page.evaluate(() => window.framesDrawn);
    while (Date.now() - began < SECONDS * 1000)
        await page.mouse.move(x, box.y + 8 + (box.height - 16) * (0.5 + 0.45 * Math.sin((Date.now() - began) / 300)));
    const frames = await page.evaluate(() => window.framesDrawn) - first, seconds = (Date.now() - began) / 1e3, cpu = await spent() - before;
    await page.mouse.up();
    await page.keyboard.press("Escape");
    console.log(JSON.stringify({points, axis: await grip.evaluate((one) => one.parentNode.getAttribute("aria-label")), frames_s: +(frames / seconds).toFixed(1), cpu_ms: +(cpu * 1e3 / frames).toFixed(1)}));
}
await browser.close();
