// search.mjs: the page of a search in Chromium: node search.mjs CHROMIUM SHOTS PAGE HOSTILE SINGLE EMPTY LARGE EXPECTED
//
// Each check is a line of JSON on standard output: {ok, name, why}. Screenshots go to the folder SHOTS. EXPECTED is JSON:
// what keys are worth, and the hash and the topology of the best point.

import {createRequire} from "node:module";
import {join} from "node:path";

import {drawn} from "./drawn.mjs";
import {paperScale, wrongLooks} from "./looks.mjs";

const {chromium} = createRequire(join(process.env.NODE_PATH, "x.js"))("playwright-core");
const [executablePath, shots, file, hostile, single, empty, large, told] = process.argv.slice(2), expected = JSON.parse(told);

function check(passed, name, why) {
    console.log(JSON.stringify({ok: Boolean(passed), name, why: passed ? "" : JSON.stringify(why) ?? ""}));
}

const browser = await chromium.launch({executablePath, args: ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]});
const said = [], asked = [];

async function open(path, options = {}) {
    const page = await browser.newPage({viewport: {width: 1280, height: 900}, ...options});
    page.on("console", (message) => said.push(`${path}: ${message.text()}`));
    page.on("pageerror", (error) => said.push(`${path}: ${error.message}`));
    page.on("request", (request) => decodeURI(request.url()) !== `file://${path}` && asked.push(request.url()));
    page.on("dialog", (dialog) => { said.push(`${path}: a dialog`); dialog.dismiss(); });
    await page.goto(`file://${encodeURI(path)}`);
    await drawn(page);
    return page;
}

const dataOf = (page) => page.evaluate(() => JSON.parse(document.getElementById("data").textContent));
const text = (page, selector) => page.locator(selector).first().textContent();
const count = (page, selector) => page.locator(selector).count();
const number = (said) => Number(said.replace(/[^0-9.]/g, ""));
const inkOf = (page, selector) => page.locator(selector).first().evaluate((canvas) => {
    const copy = Object.assign(document.createElement("canvas"), {width: canvas.width, height: canvas.height}), context = copy.getContext("2d", {willReadFrequently: true});
    context.drawImage(canvas, 0, 0);
    const {data} = context.getImageData(0, 0, copy.width, copy.height), seen = new Set();
    for (let i = 0; i < data.length; i += 4) if (data[i + 3] > 200) seen.add(data[i] << 16 | data[i + 1] << 8 | data[i + 2]);
    return seen.size;
});

// ---- figures of the page

const page = await open(file), data = await dataOf(page), good = data.points.failed.flatMap((failed, i) => failed || data.points.infeasible[i] ? [] : [i]);
const columnOf = (name) => data.columns.find((column) => column.name === name);
const ids = await page.locator("main section").evaluateAll((all) => all.map((one) => one.id));
check(JSON.stringify(ids) === JSON.stringify(["front", "lines", "effects", "point", "failures", "space"]), "the page has all sections", ids);
check(await count(page, "nav a") === ids.length, "the list of sections names each of them");
const bare = await page.locator("main section:has(canvas, [role=img])").evaluateAll((all) => all.filter((one) => !one.querySelector("table, details.behind") || !one.querySelector(".about").textContent).map((one) => one.id));
check(!bare.length, "each picture has a caption and a table behind it", bare);
check(number(await text(page, "[data-figure=Points] .figure")) === data.counts.points && number(await text(page, "[data-figure=Front] .figure")) === data.counts.front, "the tiles have the counts of the store");
check(Number(await page.locator("canvas.scatter").getAttribute("data-drawn")) >= good.length, "the scatter has a dot for each good point", good.length);
check(await inkOf(page, "canvas.scatter") > 12 && await inkOf(page, "canvas.lines") > 12, "the pictures have colours");
await page.locator("#front .behind summary").click();
await page.locator("#front .behind tbody tr").first().waitFor();
check(await count(page, "#front .behind tbody tr") === data.counts.front, "the table behind the scatter has the whole front");

const effects = Object.fromEntries(await page.locator("#effects figure.effect").evaluateAll((all) => all.map((one) => [one.dataset.key, parseFloat(one.querySelector("figcaption").lastChild.textContent)])));
const wrong = Object.entries(expected.worth).filter(([key, share]) => Math.abs(effects[key] - 100 * share) > 0.06);
check(!wrong.length, "what keys are worth is what their variances say", [wrong, effects]);
const failures = await page.locator("#failures tbody tr").evaluateAll((all) => all.map((one) => [one.cells[0].textContent, one.cells[1].textContent, one.cells[2].textContent]));
check(JSON.stringify(failures) === JSON.stringify(data.failures.map((one) => [one.status, one.why ?? "", one.count.toLocaleString("en-US")])), "failures are listed by reason, as texts", failures);

// ---- a point

check(await text(page, ".picked .hash") === expected.hash, "the page begins with the best point", await text(page, ".picked .hash"));
check(await text(page, ".picked .topology") === expected.topology, "its topology is what kbgen point writes", await text(page, ".picked .topology"));
const commands = await page.locator(".picked .commands").allTextContents(), short = expected.hash.slice(0, 12);
check(commands[0] === `kbgen point 'it'\\''s a search.db' ${short} -o point-${short}.yaml\nkbgen point-${short}.yaml -o build/point-${short}`
    && /^build\/point-[0-9a-f]{12} run gemm m=512 k=128 n=256 tile_m=(~|'~'|\d+)$/.test(commands[1]) && commands[2] === `${commands[1]} --report point-${short}.html`, "commands make it, run it and write its report", commands);
const canvas = page.locator("canvas.scatter");
await canvas.scrollIntoViewIfNeeded();
const box = await canvas.boundingBox();
let picked = expected.hash, place;
for (let i = 0; i < 12 && picked === expected.hash; i++) {
    place = [box.x + box.width * 0.3, box.y + box.height * (0.3 + i * 0.05)];
    await page.mouse.click(...place);
    picked = await text(page, ".picked .hash");
}
check(picked !== expected.hash && data.points.hash.includes(picked), "a click on the scatter shows the machine of a dot", picked);
await page.mouse.move(place[0], place[1] - 200);
await page.mouse.move(...place);
check((await text(page, "#front .readout")).startsWith(picked.slice(0, 12)), "pointing at it tells its figures", await text(page, "#front .readout"));
await canvas.focus();
await page.keyboard.press("ArrowRight");
check(data.points.front[data.points.hash.indexOf(await text(page, ".picked .hash"))] === 1, "arrow keys go along the front");
await page.locator("#failures .link").first().click();
check((await text(page, ".picked .which")).includes(data.states[Math.max(...data.points.failed)]) || /refused|deadlock|infeasible/.test(await text(page, ".picked .which")), "an example of a failure is a point to look at", await text(page, ".picked .which"));

// ---- columns, brushes

await page.locator("#front select").first().selectOption({label: "gemm.rows"});
await page.locator("#front select").nth(2).selectOption({label: "cost"});
check((await text(page, "#front .legend figcaption")) === "colour: cost", "another column has its legend");
await page.locator("[data-log=y]").click();
await drawn(page);
check(await inkOf(page, "canvas.scatter") > 12, "a logarithmic axis draws as well");
const axis = page.locator(".axis[data-axis='1'] .grip");
await axis.scrollIntoViewIfNeeded();
const grip = await axis.boundingBox(), x = grip.x + grip.width / 2;
const inside = async () => number((await text(page, "#lines .readout b")));
await page.mouse.move(x, grip.y + 12);
await page.mouse.down();
await page.mouse.move(x, grip.y + grip.height * 0.2, {steps: 3});
await page.mouse.up();
const rows = columnOf("cube.pe_template.components.pe_gemm.attrs.rows").values, want = good.filter((i) => rows[i] === 128).length;
check(await inside() === want, "a brush keeps the points of a level", [await inside(), want]);
check(number(await text(page, "#effects .note")) === want, "main effects follow the brush", await text(page, "#effects .note"));
await page.locator("#lines .behind summary").click();
await page.locator("#lines .behind tbody tr").first().waitFor();
const brushed = await page.locator("#lines .behind tbody tr").evaluateAll((all) => all.map((one) => one.cells[2].textContent));
check(brushed.length === Math.min(200, want) && brushed.every((one) => one === "128"), "so does the table behind the lines", brushed.slice(0, 5));
await page.locator("#lines").screenshot({path: join(shots, "search-brushed.png")});
await page.locator("button.clear").click();
check(await inside() === good.length, "brushes can be removed");
await page.locator(".axis[data-axis='0']").focus();
await page.keyboard.press("ArrowUp");
const some = await inside();
await page.keyboard.press("Escape");
check(some > 0 && some < good.length && await inside() === good.length, "the keyboard moves and removes a brush", [some, good.length]);

// ---- no width or scheme breaks the page; pictures of it

for (const [name, path] of [["search", file], ["single", single]])
    for (const [width, scheme] of [[1280, "light"], [1280, "dark"], [400, "light"], [400, "dark"], [1280, "print"]]) {
        if (name === "single" && (scheme !== "light" || width !== 400)) continue;
        const view = await open(path, {viewport: {width, height: 900}, colorScheme: scheme === "dark" ? "dark" : "light"});
        if (scheme === "print") await view.emulateMedia({media: "print"}), await drawn(view);
        const wrong = await wrongLooks(view);
        check(!wrong.length, `${name}, ${width} pixels, ${scheme}: nothing is too wide, broken or faint, no labels overlap or are cut off`, wrong);
        await view.screenshot({path: join(shots, `${name}-${width}-${scheme}.png`), fullPage: true});
        await view.close();
    }
for (const width of [1280, 400]) {
    const view = await open(file, {viewport: {width, height: 900}}), scale = paperScale(await view.pdf({format: "A4"}));
    check(scale > 0.999, `a page of ${width} pixels fits on paper`, scale);
    await view.close();
}
const one = await open(single);
check(await count(one, "[data-figure=Front]") === 0 && (await one.locator("main section").evaluateAll((all) => all.map((section) => section.id))).includes("effects"), "a search with one objective has no front, and all else");

// ---- texts of a store; a search without points

const strange = await open(hostile);
check(await count(strange, "#injected") === 0 && (await strange.locator("#lines").textContent()).includes("</script><img id=injected"), "texts of a store are shown as texts");
const nothing = await open(empty);
check(await count(nothing, "main section") === 1 && (await text(nothing, ".verdict")).startsWith("0 points ran"), "a search without points says so", await text(nothing, ".verdict"));

// ---- 20,000 points

const big = await open(large);
await big.waitForFunction(() => document.querySelector("canvas.lines").dataset.lines && document.querySelector("canvas.scatter").dataset.drawn, null, {timeout: 40000});
check(Number(await big.locator("canvas.scatter").getAttribute("data-drawn")) > 10000, "a page of 20,000 points opens");
const all = await text(big, "#lines .readout b"), wide = big.locator(".axis[data-axis='2'] .grip");
await wide.scrollIntoViewIfNeeded();
const spot = await wide.boundingBox(), middle = spot.x + spot.width / 2, seen = new Set();
await big.mouse.move(middle, spot.y + 20);
await big.mouse.down();
for (let i = 1; i <= 5; i++) {
    await big.mouse.move(middle, spot.y + 20 + i * 40);
    seen.add(await text(big, "#lines .readout b"));
}
await big.mouse.up();
check(seen.size > 2 && !seen.has(all), "a brush over its points is followed while it moves", [...seen]);

check(!said.length, "no page says anything on the console", said);
check(!asked.length, "no page asks for anything", asked);
await browser.close();
