// floorplan.js: the machine from above: cubes, routers, PEs and links at their places, coloured by what they did, over the
// whole run or frame by frame.

import {h, s, select, tableBehind} from "../dom.js";
import {bytes, count, digits, niceAbove, percent, time} from "../format.js";
import {enginesOf, largest, nodeName, peCount, peName, placeOf, rankOf, sum, unitPes, value} from "../result.js";
import {heat, legend} from "../scales.js";
import {section} from "../sections.js";

const CELL = 44, GAP = 26, SMALL = 12;                  // of a router with what is at it, between cubes, of a PE alone

// ---- metrics: {key, title, whole: (pe) => amount, series, text, part}

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
    if (series.hbm) found.push({key: "hbm", title: "HBM: busy", whole: (pe) => hbm.busy_ps[pe] / (span * run.machine.servers.hbm), series: series.hbm, text: percent, share: true, part: "hbm"});
    if (series["hbm bytes"]) found.push({key: "hbm bytes", title: "HBM: bytes", whole: (pe) => hbm.bytes[pe] / span * 1e12, series: series["hbm bytes"], text: rate, part: "hbm"});
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
    const cell = detailed ? CELL : SMALL, gap = detailed ? GAP : 5, top = detailed ? 46 : 18;
    const cubeWidth = cols * cell, cubeHeight = rows * cell;
    const sipWidth = cubeCols * (cubeWidth + gap) + gap, sipHeight = cubeRows * (cubeHeight + gap) + top;
    const acrossWanted = Math.sqrt(machine.sips * sipHeight / sipWidth * 1.7);
    const across = Math.max(1, Math.min(machine.sips, Math.round(acrossWanted)));
    const sip = (i) => ({x: (i % across) * (sipWidth + gap), y: Math.floor(i / across) * (sipHeight + gap)});
    const cube = (i, j) => ({x: sip(i).x + gap + (j % cubeCols) * (cubeWidth + gap),
                             y: sip(i).y + top + Math.floor(j / cubeCols) * (cubeHeight + gap)});
    return {detailed, cell, gap, top, cubes, cubeWidth, cubeHeight, sipWidth, sipHeight, sip, cube,
            width: across * (sipWidth + gap) - gap, height: Math.ceil(machine.sips / across) * (sipHeight + gap) - gap};
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
const ioCpuAt = (layout, sip) => ({x: layout.sip(sip).x + Math.max(layout.sipWidth / 2, Math.min(layout.gap + 82, layout.sipWidth - 34)), y: layout.sip(sip).y + layout.top * 0.62});

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

// Where a node is in the drawing; null: inside another one.
function positionOf(run, layout, rank) {
    const {machine} = run, place = placeOf(machine, rank);
    if (place.cube === undefined) return place.node === "io_cpu" ? ioCpuAt(layout, place.sip) : null;
    const node = machine.nodes.find((one) => one.node === place.node);
    if (!node) return null;
    const corner = layout.cube(place.sip, place.cube);
    return node.kind === "port" ? portAt(layout, corner, node) : node.kind === "router" ? routerAt(layout, corner, node.at) : null;
}

// A directed link as a line beside that of the other direction.
function linkLine(from, to, apart) {
    const length = Math.hypot(to.x - from.x, to.y - from.y) || 1, dx = -(to.y - from.y) / length * apart, dy = (to.x - from.x) / length * apart;
    return {x1: from.x + dx, y1: from.y + dy, x2: to.x + dx, y2: to.y + dy};
}

// ---- drawing. A plan has the elements whose colours change: by PE, by slice and by link

function drawPlan(run, layout) {
    const {machine} = run, plan = {pes: [], texts: [], slices: [], links: [], routers: new Map()};
    const svg = s("svg", {viewBox: `-4 -4 ${layout.width + 8} ${layout.height + 8}`, class: `plan ${layout.detailed ? "detailed" : ""}`, tabindex: 0,
                          role: "application", "aria-label": "Floorplan. Arrow keys move from PE to PE."});
    const grounds = s("g"), ground = s("g"), wires = s("g"), front = s("g");
    for (let sip = 0; sip < machine.sips; sip++) {
        const at = layout.sip(sip), io = ioCpuAt(layout, sip);
        grounds.append(s("rect", {class: "sip", x: at.x, y: at.y, width: layout.sipWidth, height: layout.sipHeight, rx: layout.detailed ? 8 : 3}));
        if (layout.detailed) front.append(s("rect", {class: "part", x: io.x - 30, y: io.y - 9, width: 60, height: 18, rx: 3}), s("text", {class: "name", x: io.x, y: io.y + 3.5}, "io_cpu"));
        front.append(s("text", {class: "sipname", x: at.x + layout.gap, y: at.y + layout.top * 0.62 + 4}, `SIP ${sip}`));
        for (let cube = 0; cube < layout.cubes; cube++) drawCube(run, layout, plan, sip, cube, ground, front);
    }
    if (layout.detailed) drawUnused(machine, layout, grounds, ground);
    const {links} = run.activity;
    for (let i = 0; i < links.from.length; i++) {
        const from = positionOf(run, layout, links.from[i]), to = positionOf(run, layout, links.to[i]);
        const inCube = links.class[i] === "noc", far = from && to && inCube && Math.hypot(to.x - from.x, to.y - from.y) > layout.cell * 1.5;
        if (!from || !to || far || (inCube && !layout.detailed)) continue;
        const line = s("line", {class: `link ${links.class[i]}`, ...linkLine(from, to, layout.detailed ? 1.7 : 0.9), "data-link": i});
        plan.links[i] = line;
        (links.class[i] === "io" ? grounds : wires).append(line);      // it would cross cubes
    }
    svg.append(grounds, ground, wires, front);
    svg.style.maxWidth = `${2 * layout.width}px`;
    plan.svg = svg;
    return plan;
}

// Links between routers, between cubes and to an io_cpu, in grey below those that were used.
function drawUnused(machine, layout, behind, ground) {
    const [rows, cols] = machine.routers, [cubeRows, cubeCols] = machine.cubes, ports = machine.nodes.filter((node) => node.kind === "port");
    const wire = (from, to, kind, below = ground) => below.append(s("line", {class: `wire ${kind}`, x1: from.x, y1: from.y, x2: to.x, y2: to.y}));
    for (let sip = 0; sip < machine.sips; sip++) {
        const port = (cube, side) => portAt(layout, layout.cube(sip, cube), ports[side]);
        for (const [cube, side] of machine.io) wire(ioCpuAt(layout, sip), port(cube, side), "io", behind);
        for (let cube = 0; cube < layout.cubes; cube++) {
            const corner = layout.cube(sip, cube), at = (row, col) => routerAt(layout, corner, [row, col]);
            if (cube % cubeCols + 1 < cubeCols) wire(port(cube, 1), port(cube + 1, 3), "ucie");
            if (Math.floor(cube / cubeCols) + 1 < cubeRows) wire(port(cube, 2), port(cube + cubeCols, 0), "ucie");
            for (let row = 0; row < rows; row++)
                for (let col = 0; col < cols; col++) {
                    if (col + 1 < cols) wire(at(row, col), at(row, col + 1), "noc");
                    if (row + 1 < rows) wire(at(row, col), at(row + 1, col), "noc");
                }
        }
    }
}

function drawCube(run, layout, plan, sip, cube, ground, front) {
    const {machine} = run, corner = layout.cube(sip, cube), [rows, cols] = machine.routers;
    const first = (sip * layout.cubes + cube) * machine.cube_pes;
    ground.prepend(s("rect", {class: "cube", x: corner.x, y: corner.y, width: layout.cubeWidth, height: layout.cubeHeight, rx: layout.detailed ? 5 : 2}));
    if (!layout.detailed) {
        const columns = Math.ceil(Math.sqrt(machine.cube_pes * layout.cubeWidth / layout.cubeHeight));
        const lines = Math.ceil(machine.cube_pes / columns), width = layout.cubeWidth / columns, height = layout.cubeHeight / lines;
        for (let i = 0; i < machine.cube_pes; i++)
            addPe(plan, front, first + i, {x: corner.x + (i % columns) * width + 0.7, y: corner.y + Math.floor(i / columns) * height + 0.7, width: width - 1.4, height: height - 1.4}, false);
        return;
    }
    front.append(s("text", {class: "cubename", x: corner.x + layout.cubeWidth - 2, y: corner.y - 3}, `cube ${cube}`));
    for (let row = 0; row < rows; row++)
        for (let col = 0; col < cols; col++) {
            const at = routerAt(layout, corner, [row, col]);
            const router = machine.nodes.find((node) => node.kind === "router" && node.at[0] === row && node.at[1] === col);
            plan.routers.set(rankOf(machine, sip, cube, router.node), s("circle", {class: "router", cx: at.x, cy: at.y, r: 3.6}));
            for (const box of boxesAt(machine, row, col)) {
                const place = {x: corner.x + col * CELL + box.x, y: corner.y + row * CELL + box.y, width: box.width, height: box.height};
                if (box.node.kind === "pe_cpu") addPe(plan, front, first + box.node.index, place, true);
                else if (box.node.kind === "hbm_ctrl") {
                    plan.slices[first + box.node.index] = s("rect", {class: "slice", ...place, rx: 1.5, "data-pe": first + box.node.index});
                    front.append(plan.slices[first + box.node.index]);
                } else front.append(s("rect", {class: "part", ...place, rx: 1.5}), place.height > 8 ? s("text", {class: "name", x: place.x + place.width / 2, y: place.y + place.height / 2 + 2.7}, box.node.kind) : "");
            }
        }
    front.append(...[...plan.routers.values()].slice(-rows * cols));
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
    const routerFull = niceAbove(Math.max(0, ...routers.map((one) => one.waits)));
    for (const router of routers) {
        router.element.classList.add(heat(router.waits / routerFull));
        router.element.addEventListener("pointerover", () => readout.replaceChildren(h("b", {}, router.name), `: waits ${messages(router.waits)}; ${bytes(router.bytes)}`));
    }

    const amount = (metric, pe) => state.frame === null ? metric.whole(pe) : value(metric.series, Math.floor(pe / perUnit), state.frame);
    const linkAmount = (i) => state.frame === null || !state.link.series ? state.link.whole(i) : value(state.link.series, i, state.frame);
    const scaleOf = (metric, n) => {
        if (metric.share && metric.part) return 1;
        if (state.frame !== null && metric.series) return niceAbove(largest(metric.series));
        let most = 0;
        for (let i = 0; i < n; i++) most = Math.max(most, metric.whole(i));
        return niceAbove(most);
    };

    function update() {
        const {metric, link} = state, full = scaleOf(metric, peCount(machine)), onSlices = metric.part === "hbm" && plan.slices.length;
        plan.pes.forEach((rect, pe) => {
            const share = amount(metric, pe) / full, step = heat(share);
            rect.setAttribute("class", onSlices ? "pe" : `pe ${step}`);
            plan.slices[pe]?.setAttribute("class", onSlices ? `slice ${step}` : "slice");
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
        readout.replaceChildren(h("b", {}, peName(machine, pe)), ": ", metrics.map((metric) => `${metric.title} ${metric.text(amount(metric, pe))}`).join("; "));
    }
    function describeLink(i) {
        const {links} = activity, name = (rank) => nodeName(machine, placeOf(machine, rank));
        readout.replaceChildren(h("b", {}, `${name(links.from[i])} to ${name(links.to[i])}`), `: ${links.class[i]} link, ${bytes(links.bytes[i])}; `,
                                linkMetrics.map((metric) => `${metric.title.slice(7)} ${metric.text(metric.whole(i))}`).join("; "));
    }
    plan.svg.addEventListener("pointerover", (event) => {
        const {pe, link} = event.target.dataset;
        if (pe !== undefined) describe(Number(pe));
        else if (link !== undefined) describeLink(Number(link));
    });
    plan.svg.addEventListener("keydown", (event) => {
        const step = {ArrowRight: 1, ArrowLeft: -1, ArrowDown: machine.cube_pes, ArrowUp: -machine.cube_pes}[event.key];
        if (!step) return;
        event.preventDefault();
        describe(((state.pe ?? -step) + step + peCount(machine)) % peCount(machine));
    });
    new ResizeObserver(() => plan.svg.classList.toggle("tiny", plan.svg.clientWidth / layout.width < 0.72)).observe(plan.svg);
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
            ...metrics.map((metric) => ({title: metric.title, number: true, of: (pe) => metric.text(metric.whole(pe))})),
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
        + (run.activity.of === "pe" ? "" : ` In frames, PEs have the mean of their ${run.activity.of}.`),
    draw: drawFloorplan,
});
