// floorplan.js: the machine from above: cubes, routers, PEs and links at their places, coloured by what they did, over the
// whole run or frame by frame.

import {h, onResize, s, select, tableBehind} from "../dom.js";
import {bytes, count, digits, niceAbove, percent, time} from "../format.js";
import {enginesOf, largest, nodeName, ownSlice, peCount, peName, placeOf, rankOf, sliceCount, sliceName, sum, unitPes, value} from "../result.js";
import {heat, legend} from "../scales.js";
import {section} from "../sections.js";

const CELL = 44, GAP = 26, SMALL = 12;                  // of a router with what is at it, between cubes, of a PE alone

// ---- metrics: {key, title, whole: (i) => amount, series, text, part}; i is a slice if part is "hbm", else a PE

const rate = (n) => count(n, "B/s");

function metricsOf(run) {
    const {activity} = run, span = run.util?.span_ps || run.end_ps, series = activity.frames.series, found = [];
    for (const engine of enginesOf(run)) {
        const servers = run.machine.servers[engine.name], busy = activity.engines[engine.name].busy_ps;
        found.push({key: engine.name, title: `${engine.name}: busy`, whole: (pe) => busy[pe] / (span * servers), series: series[engine.name], text: percent, share: true, part: "pe"});
    }
    const waits = enginesOf(run).map((engine) => activity.engines[engine.name].wait_ps);
    found.push({key: "waiting", title: "waits: tiles in queues", whole: (pe) => sum(waits.map((of) => of[pe])) / span, series: series.waiting, text: (n) => `${digits(n)} tiles`, part: "pe"});
    const {hbm, tcm} = activity.memories;
    if (series.hbm) found.push({key: "hbm", title: "HBM: busy", whole: (slice) => hbm.busy_ps[slice] / (span * run.machine.servers.hbm), series: series.hbm, text: percent, share: true, part: "hbm"});
    if (series["hbm bytes"]) found.push({key: "hbm bytes", title: "HBM: bytes", whole: (slice) => hbm.bytes[slice] / span * 1e12, series: series["hbm bytes"], text: rate, part: "hbm"});
    if (series["tcm bytes"]) found.push({key: "tcm bytes", title: "scratchpad: bytes", whole: (pe) => tcm.bytes[pe] / span * 1e12, series: series["tcm bytes"], text: rate, part: "pe"});
    return found.filter((metric) => metric.series);
}

function linkMetricsOf(run) {
    const {links, frames} = run.activity, span = run.util?.span_ps || run.end_ps;
    if (!links.from.length) return [];
    return [
        {key: "busy", title: "links: temperature (busy)", whole: (i) => links.busy_ps[i] / span, series: frames.series.links, text: percent},
        {key: "bytes", title: "links: bytes", whole: (i) => links.bytes[i] / span * 1e12, text: rate},
        {key: "wait", title: "links: waits", whole: (i) => links.wait_ps[i] / span, text: (n) => `${digits(n)} messages`},
    ];
}

// ---- geometry: where things are, in units of the drawing

function layoutOf(machine) {
    const [cubeRows, cubeCols] = machine.cubes, [rows, cols] = machine.routers, cubes = cubeRows * cubeCols;
    const detailed = machine.sips * cubes <= 64 && machine.sips * cubes * rows * cols <= 2048;
    const cell = detailed ? CELL : SMALL, gap = detailed ? GAP : 5, top = detailed ? 58 : 18;
    const cubeWidth = cols * cell, cubeHeight = rows * cell;
    const sipWidth = cubeCols * (cubeWidth + gap) + gap, sipHeight = cubeRows * (cubeHeight + gap) + top;
    const across = acrossOf(machine.sips, sipWidth, sipHeight);
    const sip = (i) => ({x: (i % across) * (sipWidth + gap), y: Math.floor(i / across) * (sipHeight + gap)});
    const cube = (i, j) => ({x: sip(i).x + gap + (j % cubeCols) * (cubeWidth + gap),
                             y: sip(i).y + top + Math.floor(j / cubeCols) * (cubeHeight + gap)});
    return {detailed, cell, gap, top, cubes, cubeWidth, cubeHeight, sipWidth, sipHeight, sip, cube,
            width: across * (sipWidth + gap) - gap, height: Math.ceil(machine.sips / across) * (sipHeight + gap) - gap};
}

// How many SIPs stand side by side: so that few places are empty, and the drawing is as wide as a page wants it.
function acrossOf(sips, width, height) {
    const places = (across) => Math.ceil(sips / across) * across;
    const cost = (across) => Math.abs(Math.log(across * across * width / (places(across) * height) / 1.7)) + 2 * (places(across) / sips - 1);
    return Array.from({length: sips}, (_, i) => i + 1).reduce((best, across) => cost(across) < cost(best) ? across : best);
}

// The middle of a router.
const routerAt = (layout, corner, [row, col]) => ({x: corner.x + col * layout.cell + 7, y: corner.y + row * layout.cell + 7});

// The place of a port: on the edge of its cube, at its router.
function portAt(layout, corner, node) {
    const at = routerAt(layout, corner, node.at), edge = 4;
    return [{x: at.x, y: corner.y - edge}, {x: corner.x + layout.cubeWidth + edge, y: at.y},
            {x: at.x, y: corner.y + layout.cubeHeight + edge}, {x: corner.x - edge, y: at.y}][node.index];
}

// Beside the name of the SIP.
const titleY = (layout) => layout.detailed ? 22 : 11;
const ioCpuAt = (layout, sip) => ({x: layout.sip(sip).x + Math.max(layout.sipWidth / 2, Math.min(layout.gap + 82, layout.sipWidth - 34)), y: layout.sip(sip).y + titleY(layout)});

// What is at a router beside it, as boxes in its cell, the PE first.
function boxesAt(machine, row, col) {
    const kinds = {pe_cpu: 3, hbm_ctrl: 1.15, sram: 1.3, m_cpu: 1};
    const found = machine.nodes.filter((node) => kinds[node.kind] && node.at[0] === row && node.at[1] === col)
        .sort((a, b) => kinds[b.kind] - kinds[a.kind]);
    const all = sum(found.map((node) => kinds[node.kind])), x = 13, width = CELL - 15, height = CELL - 15;
    let y = 13;
    return found.map((node) => {
        const box = {node, x, y, width, height: Math.max(3, height * kinds[node.kind] / all - 1.5)};
        y += height * kinds[node.kind] / all;
        return box;
    });
}

// Where a node is in the drawing, with the side of a port and the plane of a router; null: inside another one.
function positionOf(run, layout, rank) {
    const {machine} = run, place = placeOf(machine, rank);
    if (place.cube === undefined) return place.node === "io_cpu" ? ioCpuAt(layout, place.sip) : null;
    const node = machine.nodes.find((one) => one.node === place.node);
    if (!node) return null;
    const corner = layout.cube(place.sip, place.cube);
    if (node.kind === "port") return {...portAt(layout, corner, node), side: node.index};
    return node.kind === "router" ? {...routerAt(layout, corner, node.at), plane: planeOf(machine, node)} : null;
}

// Routers are numbered plane by plane; those of all planes have the same places.
const planeOf = (machine, router) => Math.floor(router.index / (machine.routers[0] * machine.routers[1]));

// ---- links: ways of a directed link, beside that of the other direction

const OUTWARDS = [{x: 0, y: -1}, {x: 1, y: 0}, {x: 0, y: 1}, {x: -1, y: 0}];      // by side: n, e, s, w

const along = (from, way, length) => ({x: from.x + way.x * length, y: from.y + way.y * length});

// To the right of the direction from one point to another.
function beside(from, to, apart) {
    const length = Math.hypot(to.x - from.x, to.y - from.y) || 1;
    return {x: -(to.y - from.y) / length * apart, y: (to.x - from.x) / length * apart};
}

function straight(from, to, apart) {
    const by = beside(from, to, apart);
    return `M${from.x + by.x},${from.y + by.y}L${to.x + by.x},${to.y + by.y}`;
}

// A link that closes a ring: its beginning and its end, each out of the grid.
function stubs(from, to, out, back, apart, length) {
    return straight(from, along(from, out, length), apart) + straight(along(to, back, length), to, apart);
}

// A link between chips: a curve that leaves both ports outwards, and passes below cubes.
function curve(from, to, apart) {
    const reach = Math.min(70, Math.hypot(to.x - from.x, to.y - from.y) / 2.5), by = beside(from, to, apart);
    const points = [from, along(from, OUTWARDS[from.side], reach), along(to, OUTWARDS[to.side], reach), to].map(({x, y}) => `${x + by.x},${y + by.y}`);
    return `M${points[0]}C${points.slice(1).join(" ")}`;
}

// A link of an io_cpu: below it, between cubes and the edge of the SIP, to the port.
function aroundCubes(layout, io, port, apart) {
    const top = io.y + 17, out = along(port, OUTWARDS[port.side], 8);
    const left = io.x - layout.sipWidth / 2 + 14, south = port.side === 2 ? [[left, top], [left, out.y]] : [];
    const points = [[io.x, io.y], [io.x, top], ...south, ...(port.side === 2 ? [] : [[out.x, top]]), [out.x, out.y], [port.x, port.y]];
    return `M${points.map(([x, y]) => `${x + apart},${y + apart}`).join("L")}`;
}

// The way of a link between two places, and whether it passes below cubes. A link of a ring of routers is longer than a cell,
// one of a ring of cubes leads from a cube at an edge to that at the other.
function wayOf(layout, from, to, kind, apart) {
    const length = Math.hypot(to.x - from.x, to.y - from.y);
    if (kind === "chip") return {d: curve(from, to, apart), below: true};
    if (kind === "io" && layout.detailed) return {d: from.side === undefined ? aroundCubes(layout, from, to, apart) : aroundCubes(layout, to, from, -apart), below: true};
    if (kind === "ucie" && length > 2 * layout.gap) return {d: stubs(from, to, OUTWARDS[from.side], OUTWARDS[to.side], apart, layout.gap * 0.4)};
    if (kind === "noc" && length > layout.cell * 1.5) {
        const way = {x: Math.sign(from.x - to.x), y: Math.sign(from.y - to.y)};
        return {d: stubs(from, to, way, {x: -way.x, y: -way.y}, apart, 6)};
    }
    return {d: straight(from, to, apart), below: kind === "io"};
}

// ---- drawing. A plan has the elements whose colours change: by PE, by slice and by link

function drawPlan(run, layout) {
    const {machine} = run, plan = {pes: [], texts: [], slices: [], sliceTexts: [], links: [], routers: new Map()};
    const svg = s("svg", {viewBox: `-4 -4 ${layout.width + 8} ${layout.height + 8}`, class: `plan ${layout.detailed ? "detailed" : ""}`, tabindex: 0,
                          role: "application", "aria-label": "Floorplan. Arrow keys move from PE to PE."});
    const grounds = s("g"), ground = s("g"), wires = s("g"), front = s("g");
    for (let sip = 0; sip < machine.sips; sip++) {
        const at = layout.sip(sip), io = ioCpuAt(layout, sip);
        grounds.append(s("rect", {class: "sip", x: at.x, y: at.y, width: layout.sipWidth, height: layout.sipHeight, rx: layout.detailed ? 8 : 3}));
        if (layout.detailed) front.append(s("rect", {class: "part", x: io.x - 30, y: io.y - 9, width: 60, height: 18, rx: 3}), s("text", {class: "name", x: io.x, y: io.y + 3.5}, "io_cpu"));
        front.append(s("text", {class: "sipname", x: at.x + layout.gap, y: at.y + titleY(layout) + 4}, `SIP ${sip}`));
        for (let cube = 0; cube < layout.cubes; cube++) drawCube(run, layout, plan, sip, cube, ground, front);
    }
    if (layout.detailed) drawUnused(machine, layout, grounds, ground);
    const {links} = run.activity;
    for (let i = 0; i < links.from.length; i++) {
        const from = positionOf(run, layout, links.from[i]), to = positionOf(run, layout, links.to[i]), kind = links.class[i];
        if (!from || !to || (kind === "noc" && !layout.detailed)) continue;
        const way = wayOf(layout, from, to, kind, layout.detailed ? 1.7 + 2.8 * (from.plane ?? to.plane ?? 0) : 0.9);
        plan.links[i] = s("path", {class: `link ${kind}`, d: way.d, "data-link": i});
        (way.below ? grounds : wires).append(plan.links[i]);
    }
    svg.append(grounds, ground, wires, front);
    svg.style.maxWidth = `${2 * layout.width}px`;
    plan.svg = svg;
    return plan;
}

// All links in grey, below those that were used.
function drawUnused(machine, layout, behind, ground) {
    const [rows, cols] = machine.routers, [cubeRows, cubeCols] = machine.cubes, ports = machine.nodes.filter((node) => node.kind === "port");
    const closed = (what) => machine.closed?.includes(what);
    const port = (sip, cube, side) => ({...portAt(layout, layout.cube(sip, cube), ports[side]), side});
    const wire = (from, to, kind) => {
        const way = wayOf(layout, from, to, kind, 0);
        (way.below ? behind : ground).append(s("path", {class: `wire ${kind}`, d: way.d}));
    };
    // Of a row or a column of `count` things: a link from each to the next, and around if it is closed.
    const chain = (count, isClosed, link) => {
        for (let i = 0; i + 1 < count; i++) link(i, i + 1);
        if (isClosed) link(count - 1, 0);
    };
    for (let sip = 0; sip < machine.sips; sip++) {
        for (const [cube, side] of machine.io) wire(ioCpuAt(layout, sip), port(sip, cube, side), "io");
        for (let row = 0; row < cubeRows; row++)
            chain(cubeCols, closed("cube_rows"), (a, b) => wire(port(sip, row * cubeCols + a, 1), port(sip, row * cubeCols + b, 3), "ucie"));
        for (let col = 0; col < cubeCols; col++)
            chain(cubeRows, closed("cube_cols"), (a, b) => wire(port(sip, a * cubeCols + col, 2), port(sip, b * cubeCols + col, 0), "ucie"));
        for (let cube = 0; cube < layout.cubes; cube++) {
            const corner = layout.cube(sip, cube), at = (row, col) => routerAt(layout, corner, [row, col]);
            for (let row = 0; row < rows; row++) chain(cols, closed("router_rows"), (a, b) => wire(at(row, a), at(row, b), "noc"));
            for (let col = 0; col < cols; col++) chain(rows, closed("router_cols"), (a, b) => wire(at(a, col), at(b, col), "noc"));
        }
    }
    for (const [sip, cube, side, toSip, toCube, toSide] of machine.chips ?? []) wire(port(sip, cube, side), port(toSip, toCube, toSide), "chip");
}

function drawCube(run, layout, plan, sip, cube, ground, front) {
    const {machine} = run, corner = layout.cube(sip, cube), [rows, cols] = machine.routers;
    const first = (sip * layout.cubes + cube) * machine.cube_pes, firstSlice = (sip * layout.cubes + cube) * machine.cube_slices;
    ground.prepend(s("rect", {class: "cube", x: corner.x, y: corner.y, width: layout.cubeWidth, height: layout.cubeHeight, rx: layout.detailed ? 5 : 2}));
    if (!layout.detailed) {
        const columns = Math.ceil(Math.sqrt(machine.cube_pes * layout.cubeWidth / layout.cubeHeight));
        const lines = Math.ceil(machine.cube_pes / columns), width = layout.cubeWidth / columns, height = layout.cubeHeight / lines;
        for (let i = 0; i < machine.cube_pes; i++)
            addPe(plan, front, first + i, {x: corner.x + (i % columns) * width + 0.7, y: corner.y + Math.floor(i / columns) * height + 0.7, width: width - 1.4, height: height - 1.4}, false);
        return;
    }
    const circles = [];
    front.append(s("text", {class: "cubename", x: corner.x + layout.cubeWidth - 2, y: corner.y - 3}, `cube ${cube}`));
    for (let row = 0; row < rows; row++)
        for (let col = 0; col < cols; col++) {
            const at = routerAt(layout, corner, [row, col]);
            const circle = s("circle", {class: "router", cx: at.x, cy: at.y, r: 3.6});
            circles.push(circle);
            for (const router of machine.nodes)
                if (router.kind === "router" && router.at[0] === row && router.at[1] === col) plan.routers.set(rankOf(machine, sip, cube, router.node), circle);
            for (const box of boxesAt(machine, row, col)) {
                const place = {x: corner.x + col * CELL + box.x, y: corner.y + row * CELL + box.y, width: box.width, height: box.height};
                if (box.node.kind === "pe_cpu") addPe(plan, front, first + box.node.index, place, true);
                else if (box.node.kind === "hbm_ctrl") addSlice(plan, front, firstSlice + box.node.index, place, `HBM ${box.node.index}`);
                else front.append(s("rect", {class: "part", ...place, rx: 1.5}), place.height > 8 ? s("text", {class: "name", x: place.x + place.width / 2, y: place.y + place.height / 2 + 2.7}, box.node.kind) : "");
            }
        }
    front.append(...circles);
    for (const node of machine.nodes.filter((one) => one.kind === "port")) {
        const at = portAt(layout, corner, node);
        front.append(s("circle", {class: "port", cx: at.x, cy: at.y, r: 2.4}));
    }
}

function addPe(plan, front, pe, place, withText) {
    plan.pes[pe] = s("rect", {class: "pe", ...place, rx: withText ? 3 : 0.8, "data-pe": pe});
    front.append(plan.pes[pe]);
    if (!withText || place.height < 9) return;
    plan.texts[pe] = s("text", {class: "figure", x: place.x + place.width / 2, y: place.y + place.height / 2 + 3.2});
    front.append(plan.texts[pe]);
}

function addSlice(plan, front, slice, place, name) {
    plan.slices[slice] = s("rect", {class: "slice", ...place, rx: 1.5, "data-slice": slice});
    front.append(plan.slices[slice]);
    if (place.height < 9) return;
    plan.sliceTexts[slice] = s("text", {class: "name", x: place.x + place.width / 2, y: place.y + place.height / 2 + 2.7}, name);
    front.append(plan.sliceTexts[slice]);
}

// ---- the section

let showFrameNow = () => {};
// Shows a frame of the run that is drawn; other sections call it.
export const showFrame = (frame) => showFrameNow(frame);

function drawFloorplan(run) {
    const {machine, activity} = run, {frames} = activity, layout = layoutOf(machine), plan = drawPlan(run, layout);
    const metrics = metricsOf(run), linkMetrics = linkMetricsOf(run), perUnit = unitPes(run);
    const busiest = metrics.find((one) => one.key === run.bound_by?.resource) ?? metrics[0];
    const state = {frame: null, metric: busiest, link: linkMetrics[0], pe: null, timer: null};
    const legends = h("div", {class: "legends"}), clock = h("output", {class: "clock"}), readout = h("p", {class: "readout", "aria-live": "polite"});
    const slider = h("input", {type: "range", min: 0, max: frames.count - 1, value: 0, step: 1, "aria-label": "Time", id: "time",
                               oninput: () => { stop(); state.frame = Number(slider.value); update(); }});
    const play = h("button", {type: "button", class: "play", onclick: () => state.timer ? stop() : start()}, "Play");
    const whole = h("button", {type: "button", class: "whole", onclick: () => { stop(); state.frame = null; update(); }}, "Whole run");

    // Routers have the colour of what waited for them over the whole run.
    const span = run.util?.span_ps || run.end_ps, messages = (n) => `${digits(n)} messages`, nodes = activity.nodes;
    const routers = nodes.rank.map((rank, i) => ({element: plan.routers.get(rank), name: nodeName(machine, placeOf(machine, rank)), waits: nodes.wait_ps[i] / span, bytes: nodes.bytes[i]})).filter((one) => one.element);
    const waitsAt = new Map();                          // routers of several planes have one circle
    for (const router of routers) waitsAt.set(router.element, (waitsAt.get(router.element) ?? 0) + router.waits);
    const routerFull = niceAbove(Math.max(0, ...waitsAt.values()));
    for (const [element, waits] of waitsAt) element.classList.add(heat(waits / routerFull));
    for (const router of routers) {
        router.element.addEventListener("pointerover", () => readout.replaceChildren(h("b", {}, router.name), `: waits ${messages(router.waits)}; ${bytes(router.bytes)}`));
    }

    const perRow = (metric) => metric.part === "hbm" && perUnit > 1 ? perUnit / machine.cube_pes * machine.cube_slices : perUnit;
    const amount = (metric, i) => state.frame === null ? metric.whole(i) : value(metric.series, Math.floor(i / perRow(metric)), state.frame);
    const ofPe = (metric, pe) => metric.part === "hbm" ? ownSlice(machine, pe) : pe;
    const linkAmount = (i) => state.frame === null || !state.link.series ? state.link.whole(i) : value(state.link.series, i, state.frame);
    const scaleOf = (metric, n) => {
        if (metric.share && metric.part) return 1;
        if (state.frame !== null && metric.series) return niceAbove(largest(metric.series));
        let most = 0;
        for (let i = 0; i < n; i++) most = Math.max(most, metric.whole(i));
        return niceAbove(most);
    };

    function update() {
        const {metric, link} = state, full = scaleOf(metric, metric.part === "hbm" ? sliceCount(machine) : peCount(machine));
        const onSlices = metric.part === "hbm" && plan.slices.length;
        plan.slices.forEach((rect, slice) => {
            const step = onSlices ? heat(amount(metric, slice) / full) : "";
            rect.setAttribute("class", onSlices ? `slice ${step}` : "slice");
            plan.sliceTexts[slice]?.setAttribute("class", onSlices ? `name on${step}` : "name");
        });
        plan.pes.forEach((rect, pe) => {
            const share = amount(metric, ofPe(metric, pe)) / full, step = heat(share);
            rect.setAttribute("class", onSlices ? "pe" : `pe ${step}`);
            if (!plan.texts[pe]) return;
            plan.texts[pe].setAttribute("class", onSlices ? "figure" : `figure on${step}`);
            plan.texts[pe].textContent = onSlices ? `PE ${pe % machine.cube_pes}` : metric.share ? Math.round(100 * share * full) : digits(Number((share * full).toPrecision(2)));
        });
        const parts = [legend(metric.title + (metric.share ? " share" : "") + (perUnit > 1 && state.frame !== null ? `, mean of a ${activity.of}` : ""), full, metric.text)];
        if (link) {
            const linkFull = scaleOf(link, activity.links.from.length);
            plan.links.forEach((line, i) => line.setAttribute("class", `link ${activity.links.class[i]} s${heat(linkAmount(i) / linkFull).slice(1)}`));
            parts.push(legend(link.title + (state.frame !== null && !link.series ? ", whole run" : ""), linkFull, link.text));
        }
        if (routers.length) parts.push(legend("routers: waits, whole run", routerFull, messages));
        legends.replaceChildren(...parts);
        whole.setAttribute("aria-pressed", state.frame === null);
        if (state.frame !== null) slider.value = state.frame;
        slider.classList.toggle("unused", state.frame === null);
        clock.textContent = state.frame === null ? `whole run, ${time(run.end_ps)}` : `${time(state.frame * frames.width_ps)} to ${time(Math.min(run.end_ps, (state.frame + 1) * frames.width_ps))}`;
        if (state.pe !== null) describe(state.pe);
    }
    function stop() {
        clearInterval(state.timer);
        state.timer = null;
        play.textContent = "Play";
    }
    function start() {
        play.textContent = "Pause";
        if (state.frame === null || state.frame === frames.count - 1) state.frame = -1;
        state.timer = setInterval(() => {
            if (!plan.svg.isConnected || state.frame === frames.count - 1) return stop();
            state.frame++;
            update();
        }, 80);
    }
    function describe(pe) {
        plan.pes[state.pe]?.classList.remove("chosen");
        state.pe = pe;
        plan.pes[pe].classList.add("chosen");
        readout.replaceChildren(h("b", {}, peName(machine, pe)), ": ", metrics.map((metric) => `${metric.title} ${metric.text(amount(metric, ofPe(metric, pe)))}`).join("; "));
    }
    function describeSlice(slice) {
        const own = metrics.filter((metric) => metric.part === "hbm");
        readout.replaceChildren(h("b", {}, sliceName(machine, slice)), own.length ? ": " : "", own.map((metric) => `${metric.title} ${metric.text(amount(metric, slice))}`).join("; "));
    }
    function describeLink(i) {
        const {links} = activity, name = (rank) => nodeName(machine, placeOf(machine, rank));
        readout.replaceChildren(h("b", {}, `${name(links.from[i])} to ${name(links.to[i])}`), `: ${links.class[i]} link, ${bytes(links.bytes[i])}; `,
                                linkMetrics.map((metric) => `${metric.title.slice(7)} ${metric.text(metric.whole(i))}`).join("; "));
    }
    plan.svg.addEventListener("pointerover", (event) => {
        const {pe, slice, link} = event.target.dataset;
        if (pe !== undefined) describe(Number(pe));
        else if (slice !== undefined) describeSlice(Number(slice));
        else if (link !== undefined) describeLink(Number(link));
    });
    plan.svg.addEventListener("keydown", (event) => {
        const step = {ArrowRight: 1, ArrowLeft: -1, ArrowDown: machine.cube_pes, ArrowUp: -machine.cube_pes}[event.key];
        if (!step) return;
        event.preventDefault();
        describe(((state.pe ?? -step) + step + peCount(machine)) % peCount(machine));
    });
    onResize(plan.svg, () => plan.svg.classList.toggle("tiny", plan.svg.clientWidth / layout.width < 0.72));
    readout.textContent = "Point at a PE or a link for its figures, or move with the arrow keys.";
    showFrameNow = (frame) => { stop(); state.frame = frame; update(); };
    update();
    const choose = (list, key) => list.find((one) => one.key === key);
    return [
        h("div", {class: "controls"},
          select("Colour PEs by", metrics.map((one) => ({value: one.key, title: one.title})), state.metric.key, (key) => { state.metric = choose(metrics, key); update(); }),
          linkMetrics.length ? select("Colour links by", linkMetrics.map((one) => ({value: one.key, title: one.title})), state.link.key, (key) => { state.link = choose(linkMetrics, key); update(); }) : null,
          h("div", {class: "player"}, play, whole, slider, clock)),
        legends, plan.svg, readout,
        tableBehind(`Table: all ${peCount(machine)} PEs, whole run`, [
            {title: "PE", of: (pe) => peName(machine, pe)},
            ...metrics.map((metric) => ({title: metric.title, number: true, of: (pe) => metric.text(metric.whole(ofPe(metric, pe)))})),
        ], () => Array.from({length: peCount(machine)}, (_, pe) => pe)),
        routers.length ? tableBehind(`Table: all ${routers.length} routers`, [
            {title: "router", of: (one) => one.name}, {title: "waits", number: true, of: (one) => messages(one.waits)}, {title: "bytes", number: true, of: (one) => bytes(one.bytes)},
        ], () => [...routers].sort((a, b) => b.waits - a.waits)) : null,
        linkMetrics.length ? tableBehind(`Table: all ${activity.links.from.length} links that were used`, [
            {title: "from", of: (i) => nodeName(machine, placeOf(machine, activity.links.from[i]))},
            {title: "to", of: (i) => nodeName(machine, placeOf(machine, activity.links.to[i]))},
            {title: "class", of: (i) => activity.links.class[i]},
            {title: "bytes", number: true, of: (i) => bytes(activity.links.bytes[i])},
            {title: "busy", number: true, of: (i) => percent(linkMetrics[0].whole(i))},
            {title: "waits", number: true, of: (i) => time(activity.links.wait_ps[i])},
            {title: "longest queue", number: true, of: (i) => activity.links.longest_queue[i]},
        ], () => activity.links.from.map((_, i) => i).sort((a, b) => activity.links.busy_ps[b] - activity.links.busy_ps[a])) : null,
    ];
}

section({
    id: "floorplan", title: "Floorplan", shows: (run) => run.machine && run.activity,
    about: (run) => "Cubes, routers, PEs and links at their places in the machine. The colour of a PE is the chosen amount, that of a line the chosen amount of the link in its direction, that of a circle the messages that waited for the router; grey is nothing. "
        + `Play runs through ${run.activity.frames.count} frames of ${time(run.activity.frames.width_ps)} each.`
        + (run.machine.closed?.length ? " A link that closes a ring shows as two stubs, at its ends." : "")
        + (run.machine.chips?.length ? " Links between chips pass below cubes." : "")
        + (run.activity.of === "pe" ? "" : ` In frames, PEs have the mean of their ${run.activity.of}.`),
    draw: drawFloorplan,
});
