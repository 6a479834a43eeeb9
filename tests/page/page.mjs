// page.mjs: the report page in Chromium: node page.mjs CHROMIUM SHOTS GEMM REDUCE BOTH HOSTILE BARE POD WHY RINGS
//
// Each check is a line of JSON on standard output: {ok, name, why}. Screenshots go to the folder SHOTS.

import {createRequire} from "node:module";
import {join} from "node:path";

import {drawn} from "./drawn.mjs";
import {paperScale, wrongLooks} from "./looks.mjs";

const {chromium} = createRequire(join(process.env.NODE_PATH, "x.js"))("playwright-core");
const [executablePath, shots, gemm, reduce, both, hostile, bare, pod, why, rings] = process.argv.slice(2);

function check(passed, name, why) {
    console.log(JSON.stringify({ok: Boolean(passed), name, why: passed ? "" : JSON.stringify(why) ?? ""}));
}

const browser = await chromium.launch({executablePath, args: ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]});
const said = [], asked = [];

async function open(file, options = {}) {
    const page = await browser.newPage({viewport: {width: 1280, height: 900}, ...options});
    page.on("console", (message) => said.push(`${file}: ${message.text()}`));
    page.on("pageerror", (error) => said.push(`${file}: ${error.message}`));
    page.on("request", (request) => request.url() !== `file://${file}` && asked.push(request.url()));
    page.on("dialog", (dialog) => { said.push(`${file}: a dialog`); dialog.dismiss(); });
    await page.goto(`file://${file}`);
    await drawn(page);
    return page;
}

const dataOf = (page) => page.evaluate(() => JSON.parse(document.getElementById("data").textContent).runs.map((run) => run.result));
const text = (page, selector) => page.locator(selector).first().textContent();
const count = (page, selector) => page.locator(selector).count();
const number = (told) => Number(told.replace(/[^0-9.]/g, ""));

// ---- a run with matrix products

const page = await open(gemm), [run] = await dataOf(page), {frames} = run.activity;

check(number(await text(page, "[data-figure='Simulated time'] .note")) === run.end_ps, "the page tells the simulated time to the picosecond");
check((await text(page, ".verdict")).includes("verified result is right"), "the verdict says that the result is right", await text(page, ".verdict"));
const wrongShares = [];
for (const [name, of] of Object.entries(run.util))
    if (of.busy_ps > 0 && Math.abs(number(await text(page, `[data-busy='${name}']`)) - 100 * of.busy_ps / run.util.span_ps / of.servers) > 0.0501) wrongShares.push(name);
check(!wrongShares.length, "each busy share on the page is that of the result", wrongShares);
const ids = await page.locator("main section").evaluateAll((all) => all.map((one) => one.id));
check(["what", "floorplan", "busy", "timeline", "waits", "roofline", "bounds", "launches", "verification", "races"].every((id) => ids.includes(id)), "a run with all keys has all sections", ids);
check(await count(page, "nav a") === ids.length, "the list of sections names each of them");
const bareFigures = await page.locator("main section:has([role=img], [role=application])").evaluateAll((all) => all.filter((one) => !one.querySelector("table, details.behind") || !one.querySelector(".about")).map((one) => one.id));
check(!bareFigures.length, "each picture has a caption and a table behind it", bareFigures);
check(await count(page, ".plan .pe") === 4 && await count(page, ".plan .cube") === 2 && await count(page, ".plan .router") === 8, "the floorplan has every PE, cube and router");
const between = run.activity.links.class.filter((one) => one === "noc" || one === "ucie").length;
const waits = await page.locator("#floorplan .legend figcaption").last().textContent();
check(waits.startsWith("routers: waits") && await count(page, ".plan .router[class*=' h']") === 8, "routers are coloured by their waits", waits);
check(between > 2 && await count(page, ".plan .link.noc, .plan .link.ucie") === between, "the floorplan has every used link between routers and cubes", between);
check((await text(page, ".readout")).startsWith("Point"), "the floorplan says how to use it");

// The time: slider, player, chart.
const clock = page.locator(".clock"), figures = () => page.locator(".plan .figure").allTextContents();
const wholeRun = await figures();
await page.locator("#time").fill(String(Math.floor(frames.count / 2)));
const levels = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz-_";
const metric = await page.locator("#floorplan select").first().inputValue(), series = frames.series[metric];
const expected = series.row_of.map((row) => String(Math.round(100 * levels.indexOf(series.rows[row][Math.floor(frames.count / 2)] ?? "0") * series.full / 63)));
check(JSON.stringify(await figures()) === JSON.stringify(expected), "the slider shows the frame's figures on the PEs", [await figures(), expected, wholeRun]);
check(/ to /.test(await clock.textContent()), "the slider says which time it shows", await clock.textContent());
await page.locator("button.whole").click();
check(JSON.stringify(await figures()) === JSON.stringify(wholeRun) && (await clock.textContent()).startsWith("whole run"), "a click goes back to the whole run");
await page.locator(".play").click();
const pause = await text(page, ".play"), runs = await page.waitForFunction(() => Number(document.getElementById("time").value) > 2, null, {timeout: 20000}).then(() => true, () => false);
check(pause === "Pause" && runs, "Play runs through frames", pause);
await page.locator(".play").click();
await page.locator("#busy .chart").scrollIntoViewIfNeeded();
const box = await page.locator("#busy .chart").boundingBox();
await page.mouse.click(box.x + box.width * 0.75, box.y + 30);
const frame = Number(await page.locator("#time").inputValue());
check(Math.abs(frame / frames.count - 0.72) < 0.06, "a click on the chart shows that time on the floorplan", [frame, frames.count]);
check((await page.locator("#busy .chart canvas").first().evaluate((canvas) => new Set(canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data).size)) > 8, "the chart has colours");

// Metrics, keyboard, tables.
await page.locator("button.whole").click();
await page.locator("#floorplan select").first().selectOption("hbm bytes");
check((await text(page, ".legend figcaption")).includes("HBM: bytes") && /B\/s/.test(await text(page, ".legend .ends")), "another metric has its legend and its unit");
await page.locator("#floorplan select").nth(1).selectOption("wait");
check((await page.locator(".legend figcaption").nth(1).textContent()).includes("links: waits"), "links are coloured by another metric");
await page.locator(".plan").focus();
await page.keyboard.press("ArrowRight");
await page.keyboard.press("ArrowRight");
check((await text(page, "#floorplan .readout")).startsWith("sip0.cube0.pe1: "), "arrow keys move from PE to PE", await text(page, "#floorplan .readout"));
await page.locator("#waits .behind summary").click();
await page.locator("#waits .behind tbody tr").first().waitFor();
const rows = await page.locator("#waits .behind tbody tr").evaluateAll((all) => all.map((one) => one.cells[0].textContent));
check(rows.length === 4 && new Set(rows).size === 4, "the table behind the waits has every PE", rows);
const busyTotal = (names) => names.map((name) => run.activity.engines[name].wait_ps).reduce((sums, list) => sums.map((sum, pe) => sum + list[pe]), [0, 0, 0, 0]);
const worst = busyTotal(Object.keys(run.activity.engines)), first = rows[0];
check(first === ["sip0.cube0.pe0", "sip0.cube0.pe1", "sip0.cube1.pe0", "sip0.cube1.pe1"][worst.indexOf(Math.max(...worst))], "PEs are sorted by their waits", [first, worst]);
const timeline = page.locator("canvas.timeline"), view = () => timeline.getAttribute("data-view");
const all = await view();
await timeline.focus();
await page.keyboard.press("+");
const nearer = await view();
await page.keyboard.press("Escape");
check(nearer !== all && await view() === all, "the timeline zooms by keyboard and shows all again", [all, nearer]);
await timeline.scrollIntoViewIfNeeded();
const area = await timeline.boundingBox();
await page.mouse.move(area.x + 300, area.y + 130);
await page.mouse.down();
await page.mouse.move(area.x + 500, area.y + 300, {steps: 4});
await page.mouse.up();
const [t0, t1] = (await view()).split(" ").map(Number);
check(t0 > 0 && t1 < run.activity.timeline.count && t1 - t0 < run.activity.timeline.count / 2, "a drag over the timeline zooms to that time", await view());
const point = await text(page, "[data-point='the run'] title");
check(point.includes("FLOP/s") && Math.abs(number(point) / [1, 1e3, 1e6, 1e9, 1e12, 1e15][" kMGTP".indexOf(/([kMGTP]?)FLOP/.exec(point)[1] || " ")] - 0) > 0, "the run is a point of the roofline", point);

// ---- why, probes, what-if

const whyPage = await open(why), [explained, changed] = await dataOf(whyPage), {path, account} = explained.why;
check(path.segments === undefined && account.kernels === undefined, "the page has no long lists of segments and kernels");
const strip = await whyPage.locator("#path svg.path rect").evaluateAll((all) => all.map((one) => Number(one.getAttribute("width"))));
const stripWide = await whyPage.locator("#path svg.path").evaluate((one) => one.viewBox.baseVal.width);
check(strip.length > 3 && Math.abs(strip.reduce((a, b) => a + b) - stripWide) < 0.5, "the critical path over time has no gap", strip);
const reasons = await whyPage.locator("#path [aria-label='The critical path by reason'] tbody tr").evaluateAll((all) => all.map((one) => [one.querySelector("b").textContent, parseFloat(one.cells[2].textContent)]));
check(reasons.length > 2 && reasons.every(([name, share], i) => name === path.by_reason[i].reason.replace("_", " ") && Math.abs(share - 100 * path.by_reason[i].share) < 0.06), "shares of the path are those of the result", reasons);
await whyPage.locator("#account .behind summary").click();
await whyPage.locator("#account .behind tbody tr").first().waitFor();
const accounts = await whyPage.locator("#account .behind tbody tr").evaluateAll((all) => all.map((one) => one.cells[0].textContent));
const blocked = [0, 1, 2, 3].map((pe) => Object.entries(account.pes).reduce((sum, [name, list]) => sum + (name === "engine" ? 0 : list[pe]), 0));
check(accounts.length === 4 && accounts[0] === ["sip0.cube0.pe0", "sip0.cube0.pe1", "sip0.cube1.pe0", "sip0.cube1.pe1"][blocked.indexOf(Math.max(...blocked))], "the account begins with the PE that was blocked for longest", [accounts, blocked]);
check(await count(whyPage, "#account svg.bars g") === 4, "the account has a bar for each PE");
const engineRows = await whyPage.locator("#engine-account [aria-label='How engines spent the time of kernels'] tbody tr").evaluateAll((all) => all.map((one) => [one.cells[0].textContent, parseFloat(one.cells[2].textContent), [...one.querySelectorAll("svg rect:not(.track)")].reduce((sum, part) => sum + Number(part.getAttribute("width")), 0)]));
check(engineRows.length > 4 && engineRows.every(([name, busy, wide], i) => name === account.engines[i].engine && Math.abs(busy - 100 * account.engines[i].busy_ps / account.engines[i].time_ps) < 0.06 && Math.abs(wide - 100) < 0.1), "the account of engines has a full bar for each, busy as the result says", engineRows);
await whyPage.locator("canvas.probes").focus();
await whyPage.keyboard.press("ArrowRight");
await whyPage.keyboard.press("ArrowDown");
const {probe_matrix: matrix} = explained, toldProbe = await text(whyPage, "#probes .readout");
check(toldProbe.startsWith(`${matrix.from[1]} to ${matrix.to[0]}: `) && Math.abs(number(toldProbe.slice(toldProbe.indexOf(": ")).split(",")[0]) - matrix.ps[1][0] / 1000) < 1, "arrow keys move over the probes, whose times are those of the result", [toldProbe, matrix.ps[1][0]]);
await whyPage.locator("#contents select").selectOption("1");
const gains = await whyPage.locator("#whatif table tbody tr").evaluateAll((all) => all.map((one) => one.cells[0].querySelector("b").textContent));
check(JSON.stringify(gains) === JSON.stringify(changed.changes.map((one) => one.key ?? one.param)), "what-if has a row for each number that changes the time", gains);

// ---- colours: the scale is even, and text on tiles can be read

async function scaleOf(scheme) {
    const other = await open(gemm, {colorScheme: scheme});
    const found = await other.evaluate(() => {
        const context = document.createElement("canvas").getContext("2d", {willReadFrequently: true});
        const rgb = (colour) => {
            context.fillStyle = colour;
            context.fillRect(0, 0, 1, 1);
            return [...context.getImageData(0, 0, 1, 1).data.slice(0, 3)].map((n) => n / 255);
        };
        const linear = (n) => n <= 0.04045 ? n / 12.92 : ((n + 0.055) / 1.055) ** 2.4;
        const luminance = ([r, g, b]) => 0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b);
        const contrast = (a, b) => (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
        const svg = document.querySelector(".plan"), make = (name, kind) => {
            const one = document.createElementNS("http://www.w3.org/2000/svg", name);
            one.setAttribute("class", kind);
            svg.append(one);
            return getComputedStyle(one).fill;
        };
        return Array.from({length: 21}, (_, i) => {
            const tile = luminance(rgb(make("rect", `pe h${i}`))), ink = luminance(rgb(make("text", `figure onh${i}`)));
            return {lightness: Math.cbrt(tile), contrast: contrast(tile, ink)};
        });
    });
    await other.close();
    return found;
}
for (const scheme of ["light", "dark"]) {
    const scale = await scaleOf(scheme), steps = scale.slice(1).map((one, i) => one.lightness - scale[i].lightness);
    check(steps.every((step) => Math.sign(step) === Math.sign(steps[0])) && Math.max(...steps.map(Math.abs)) < 3 * Math.min(...steps.map(Math.abs)), `in ${scheme}, the colour scale grows evenly in lightness`, steps);
    check(scale.every((one) => one.contrast >= 3), `in ${scheme}, text can be read on a tile of every colour`, scale.map((one) => one.contrast.toFixed(1)));
}

// ---- no width or scheme breaks the page; pictures of it

for (const [name, file] of [["gemm", gemm], ["reduce", reduce], ["why", why], ["compare", both], ["rings", rings]])
    for (const [width, scheme] of [[1280, "light"], [1280, "dark"], [400, "light"], [400, "dark"], [1280, "print"]]) {
        if (name !== "gemm" && width === 400 && scheme === "dark") continue;
        const view = await open(file, {viewport: {width, height: 900}, colorScheme: scheme === "dark" ? "dark" : "light"});
        if (scheme === "print") await view.emulateMedia({media: "print"}), await drawn(view);
        const wrong = await wrongLooks(view);
        check(!wrong.length, `${name}, ${width} pixels, ${scheme}: nothing is too wide, broken or faint, no labels overlap or are cut off`, wrong);
        await view.screenshot({path: join(shots, `${name}-${width}-${scheme}.png`), fullPage: true});
        await view.close();
    }
for (const [width, colorScheme] of [[1280, "dark"], [400, "light"]]) {
    const view = await open(why, {viewport: {width, height: 900}, colorScheme}), pdf = await view.pdf({format: "A4"});
    check(paperScale(pdf) > 0.999, `a page of ${width} pixels fits on paper`, paperScale(pdf));
    await view.close();
}

// ---- several runs

const pair = await open(both), two = await dataOf(pair);
check(await count(pair, "#compare thead th") === 3 && (await text(pair, "#compare h2")) === "Comparison", "a page of two runs compares them");
const change = await text(pair, "#compare tbody tr:first-child .change"), exact = 100 * (two[1].end_ps / two[0].end_ps - 1);
check(Math.abs(number(change) - Math.abs(exact)) <= 0.5 && change.startsWith(exact > 0 ? "+" : "−"), "the difference of the times is right", [change, exact]);
check(await count(pair, "#compare .pair .bar") >= 8, "busy shares stand side by side");
await pair.locator("nav select").selectOption("1");
check((await pair.title()).startsWith("B ") && number(await text(pair, "[data-figure='Simulated time'] .note")) === two[1].end_ps, "the other run can be chosen", await pair.title());

// ---- texts of a result

const strange = await open(hostile);
check(await count(strange, "#injected") === 0 && (await text(strange, "h1")).includes("</script><img id=injected"), "texts of a result are shown as texts", await text(strange, "h1"));
check(await count(strange, ".verdict.bad") === 1 && (await text(strange, "[data-figure=Verified] .figure")).includes("1 not right"), "a wrong result looks wrong");
const plain = await open(bare);
check(await count(plain, "main section") === 1, "a result with hardly a key has hardly a section");

// ---- a machine with rings and a link between chips

const ring = await open(rings), [ringed] = await dataOf(ring), {links: of} = ringed.activity;
const ways = await ring.locator(".plan .link").evaluateAll((all) => all.map((one) => [Number(one.dataset.link), one.getTotalLength()]));
const inPlan = (kind) => ways.filter(([i]) => of.class[i] === kind), used = (kind) => of.class.filter((one) => one === kind).length;
check(["noc", "ucie", "chip"].every((kind) => used(kind) > 1 && inPlan(kind).length === used(kind)), "the floorplan has every used link of rings and between chips", ["noc", "ucie", "chip"].map((kind) => [kind, used(kind), inPlan(kind).length]));
check([...inPlan("noc"), ...inPlan("ucie")].every(([, length]) => length < 60), "a link that closes a ring does not cross what is between its ends", ways);
check(await count(ring, ".plan .wire.chip") === 1 && await count(ring, ".plan .wire.ucie") === 6 && await count(ring, ".plan .wire.noc") === 6 * 18, "the floorplan has every link that exists");
const places = await ring.locator(".plan .link.noc").evaluateAll((all) => all.map((one) => one.getAttribute("d")));
check(new Set(places).size === places.length, "links of two planes are side by side");
await ring.screenshot({path: join(shots, "rings-1280-light.png"), fullPage: true});

// ---- a machine of 4,096 PEs

const large = await open(pod);
check(await count(large, ".plan .pe") === 4096 && await count(large, ".plan .cube") === 512, "the floorplan of a large machine has every PE and cube");
await large.locator("#time").fill("50");
check(/ to /.test(await text(large, ".clock")), "its slider works");
await large.screenshot({path: join(shots, "pod-1280-light.png"), fullPage: true});

check(!said.length, "no page says anything on the console", said);
check(!asked.length, "no page asks for anything", asked);
await browser.close();
