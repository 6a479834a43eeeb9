// timeline.js: what each PE did at each time, as a picture of PEs x time that zooms.

import {colour, h, onResize, paint, swatch, tableBehind} from "../dom.js";
import {percent, ticks, time, timeUnit} from "../format.js";
import {engines, unitName} from "../result.js";
import {section} from "../sections.js";

const TIMELINE_LEFT = 108, TIMELINE_BOTTOM = 30, TIMELINE_HEIGHT = 420, LEAST_UNITS = 4, LEAST_COLUMNS = 16;

const states = [...engines.filter((engine) => engine.letter !== "s"), {letter: ".", colour: "idle", name: "kernel waits", does: "a kernel runs, no engine works"}];

const letterAt = (timeline, unit, column) => timeline.rows[timeline.row_of[unit]][column] ?? " ";

// How many columns each state has over all units.
function stateShares(timeline) {
    const uses = new Uint32Array(timeline.rows.length), found = {};
    for (const row of timeline.row_of) uses[row]++;
    timeline.rows.forEach((row, i) => {
        for (const letter of row) found[letter] = (found[letter] ?? 0) + uses[i];
    });
    return (letter) => (found[letter] ?? 0) / (timeline.row_of.length * timeline.count);
}

function drawTimeline(run) {
    const {timeline} = run.activity, units = timeline.row_of.length, share = stateShares(timeline);
    const canvas = h("canvas", {class: "timeline", tabindex: 0, role: "img",
                                "aria-label": "PEs by time. Plus and minus zoom, arrow keys move, Escape shows all."});
    const readout = h("p", {class: "readout", "aria-live": "polite"}, "Drag to zoom, double-click to show all. By keyboard: + and − zoom, arrows move.");
    const all = () => ({t0: 0, t1: timeline.count, u0: 0, u1: units});
    let view = all(), drag = null;

    const plot = () => ({x: TIMELINE_LEFT, y: 0, width: canvas.clientWidth - TIMELINE_LEFT - 8, height: TIMELINE_HEIGHT - TIMELINE_BOTTOM});
    const columnAt = (x) => view.t0 + (x - TIMELINE_LEFT) / plot().width * (view.t1 - view.t0);
    const unitAt = (y) => view.u0 + y / plot().height * (view.u1 - view.u0);

    function show(next) {
        const columns = Math.min(timeline.count, Math.max(LEAST_COLUMNS, next.t1 - next.t0)), rows = Math.min(units, Math.max(LEAST_UNITS, next.u1 - next.u0));
        const t0 = Math.max(0, Math.min(timeline.count - columns, next.t0)), u0 = Math.max(0, Math.min(units - rows, next.u0));
        view = {t0, t1: t0 + columns, u0, u1: u0 + rows};
        draw();
    }
    function zoom(factor) {
        const t = (view.t0 + view.t1) / 2, u = (view.u0 + view.u1) / 2, dt = (view.t1 - view.t0) / 2 * factor, du = (view.u1 - view.u0) / 2 * factor;
        show({t0: t - dt, t1: t + dt, u0: u - du, u1: u + du});
    }
    const move = (t, u) => show({t0: view.t0 + t * (view.t1 - view.t0), t1: view.t1 + t * (view.t1 - view.t0), u0: view.u0 + u * (view.u1 - view.u0), u1: view.u1 + u * (view.u1 - view.u0)});

    function drawCells(context, area) {
        const paints = Object.fromEntries(states.map((state) => [state.letter, colour(state.colour)]));
        const dx = area.width / (view.t1 - view.t0), dy = area.height / (view.u1 - view.u0);
        context.save();
        context.beginPath();
        context.rect(area.x, area.y, area.width, area.height);
        context.clip();
        for (let unit = Math.floor(view.u0); unit < Math.min(units, Math.ceil(view.u1)); unit++) {
            const y = (unit - view.u0) * dy, space = dy > 6 ? 1 : 0;
            for (let column = Math.floor(view.t0); column < Math.min(timeline.count, Math.ceil(view.t1));) {
                const letter = letterAt(timeline, unit, column);
                let end = column + 1;
                while (end < view.t1 && letterAt(timeline, unit, end) === letter) end++;
                if (letter !== " ") {
                    context.fillStyle = paints[letter];
                    context.fillRect(area.x + (column - view.t0) * dx, y, (end - column) * dx + 0.4, Math.max(0.6, dy - space) + (space ? 0 : 0.4));
                }
                column = end;
            }
        }
        context.restore();
    }
    function drawAxes(context, area) {
        const from = view.t0 * timeline.width_ps, to = view.t1 * timeline.width_ps, unit = timeUnit(to);
        context.font = `12px ${colour("font")}`;
        context.fillStyle = colour("muted");
        context.strokeStyle = colour("line");
        context.textAlign = "center";
        const places = ticks(from / unit.ps, to / unit.ps, area.width / 90);
        for (const at of places) {
            const x = area.x + (at * unit.ps - from) / (to - from) * area.width;
            context.fillRect(x, area.height, 1, 4);
            if (x > area.x + area.width - 40 && at === places.at(-1)) continue;
            context.fillText(String(Number(at.toPrecision(6))), x, area.height + 17);
        }
        context.textAlign = "right";
        context.fillText(unit.name, area.x + area.width, area.height + 17);
        const step = Math.max(1, Math.ceil((view.u1 - view.u0) / (area.height / 18)));
        for (let row = Math.ceil(view.u0 / step) * step; row < view.u1; row += step) {
            const y = (row + 0.5 - view.u0) / (view.u1 - view.u0) * area.height;
            if (y > 6 && y < area.height) context.fillText(unitName(run, row), area.x - 6, y + 4);
        }
    }
    function draw() {
        if (!canvas.clientWidth) return;
        const ratio = window.devicePixelRatio || 1, area = plot(), context = canvas.getContext("2d");
        canvas.width = canvas.clientWidth * ratio;
        canvas.height = TIMELINE_HEIGHT * ratio;
        context.scale(ratio, ratio);
        context.clearRect(0, 0, canvas.clientWidth, TIMELINE_HEIGHT);
        drawCells(context, area);
        drawAxes(context, area);
        if (drag?.to) {
            context.fillStyle = colour("veil");
            context.fillRect(Math.min(drag.x, drag.to.x), Math.min(drag.y, drag.to.y), Math.abs(drag.to.x - drag.x), Math.abs(drag.to.y - drag.y));
        }
        canvas.dataset.view = [view.t0, view.t1, view.u0, view.u1].map((n) => n.toFixed(1)).join(" ");
    }
    const at = (event) => ({x: event.offsetX, y: event.offsetY});
    canvas.addEventListener("pointerdown", (event) => { drag = {...at(event), to: null}; canvas.setPointerCapture(event.pointerId); });
    canvas.addEventListener("pointermove", (event) => {
        const {x, y} = at(event), column = Math.floor(columnAt(x)), unit = Math.floor(unitAt(y));
        if (drag && Math.abs(x - drag.x) + Math.abs(y - drag.y) > 6) { drag.to = {x, y}; draw(); }
        if (x < TIMELINE_LEFT || unit >= units || column >= timeline.count || column < 0) return;
        const letter = letterAt(timeline, unit, column), state = states.find((one) => one.letter === letter);
        readout.replaceChildren(h("b", {}, unitName(run, unit)), ` at ${time(column * timeline.width_ps)}: ${state ? `${state.name} (${state.does})` : "no kernel runs"}`);
    });
    canvas.addEventListener("pointerup", () => {
        const from = drag, to = drag?.to;
        drag = null;
        if (!to) return;
        const few = Math.abs(unitAt(to.y) - unitAt(from.y)) < 1;
        show({t0: Math.min(columnAt(from.x), columnAt(to.x)), t1: Math.max(columnAt(from.x), columnAt(to.x)),
              u0: few ? view.u0 : Math.min(unitAt(from.y), unitAt(to.y)), u1: few ? view.u1 : Math.max(unitAt(from.y), unitAt(to.y))});
    });
    canvas.addEventListener("dblclick", () => show(all()));
    canvas.addEventListener("keydown", (event) => {
        const acts = {"+": () => zoom(0.5), "=": () => zoom(0.5), "-": () => zoom(2), Escape: () => show(all()), ArrowLeft: () => move(-0.2, 0),
                      ArrowRight: () => move(0.2, 0), ArrowUp: () => move(0, -0.2), ArrowDown: () => move(0, 0.2)};
        if (!acts[event.key]) return;
        event.preventDefault();
        acts[event.key]();
    });
    onResize(canvas, draw);
    requestAnimationFrame(() => paint(draw));
    const button = (text, label, act) => h("button", {type: "button", "aria-label": label, onclick: act}, text);
    return [
        h("div", {class: "controls"}, h("div", {class: "keys"}, states.filter((state) => share(state.letter) > 0).map((state) => h("span", {class: "key"}, swatch(state.colour), state.name))),
          h("div", {class: "zoom"}, button("+", "Zoom in", () => zoom(0.5)), button("−", "Zoom out", () => zoom(2)), button("All", "Show all", () => show(all())))),
        canvas, readout,
        tableBehind("Table: shares of the whole run", [
            {title: "state", of: (state) => state.name}, {title: "meaning", of: (state) => state.does},
            {title: "share of all times of all PEs", number: true, of: (state) => percent(share(state.letter))},
        ], () => [...states, {letter: " ", name: "no kernel", does: "before and after the kernels"}]),
    ];
}

section({
    id: "timeline", title: "Timeline", shows: (run) => run.activity?.timeline,
    about: (run) => `What each ${run.activity.of === "pe" ? "PE" : run.activity.of} did in each ${time(run.activity.timeline.width_ps)}. A moment has the colour of the first engine in this list that was busy for at least half of it, `
        + "else that of the busiest. Colours that change at the same time everywhere are phases of the program; ragged ends are imbalance.",
    draw: drawTimeline,
});
