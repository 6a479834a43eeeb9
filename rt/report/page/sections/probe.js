// probe.js: times of single transfers between all pairs of ends in an idle machine, as a heat map.

import {colour, h, onResize, paint, tableBehind} from "../dom.js";
import {bytes, count, digits, time} from "../format.js";
import {heat, legend} from "../scales.js";
import {section} from "../sections.js";

const PROBE_LEFT = 108, PROBE_MOST = 640, PROBE_TABLE = 40;

// The 21 colours of the scale, for a canvas.
function heatColours() {
    const probe = document.body.appendChild(h("i"));
    const found = Array.from({length: 21}, (_, i) => { probe.className = `ramp-step b${i}`; return getComputedStyle(probe).backgroundColor; });
    probe.remove();
    return found;
}

function drawProbes(run) {
    const matrix = run.probe_matrix, {from, to, ps} = matrix, known = ps.flat().filter((one) => one !== null);
    const least = known.reduce((a, b) => Math.min(a, b)), most = known.reduce((a, b) => Math.max(a, b)), spread = most - least || 1;
    const canvas = h("canvas", {class: "probes", tabindex: 0, role: "img", "aria-label": "Time of a transfer from each row to each column. Arrow keys move."});
    const readout = h("p", {class: "readout", "aria-live": "polite"}, "Point at a cell, or move with the arrow keys.");
    let at = null;
    const plot = () => { const wide = Math.min(PROBE_MOST, canvas.clientWidth - PROBE_LEFT - 4); return {dx: wide / to.length, dy: Math.min(wide / to.length, PROBE_MOST / from.length)}; };
    function draw() {
        if (!canvas.clientWidth) return;
        const {dx, dy} = plot(), ratio = window.devicePixelRatio || 1, high = dy * from.length + 4, context = canvas.getContext("2d"), colours = heatColours();
        canvas.style.height = `${high}px`;
        canvas.width = canvas.clientWidth * ratio;
        canvas.height = high * ratio;
        context.scale(ratio, ratio);
        const gap = dx > 6 ? 0.6 : 0, edge = (i, step) => dx > 6 ? i * step : Math.round(i * step * ratio) / ratio;     // no seams between small cells
        ps.forEach((row, y) => row.forEach((one, x) => {
            if (one === null) return;
            context.fillStyle = colours[Number(heat((one - least) / spread).slice(1))];
            context.fillRect(PROBE_LEFT + edge(x, dx), edge(y, dy), edge(x + 1, dx) - edge(x, dx) - gap, edge(y + 1, dy) - edge(y, dy) - gap);
        }));
        context.font = `12px ${colour("font")}`;
        context.fillStyle = colour("muted");
        context.textAlign = "right";
        const step = Math.max(1, Math.ceil(16 / dy));
        for (let y = 0; y < from.length; y += step) context.fillText(from[y], PROBE_LEFT - 6, Math.max(11, (y + 0.5) * dy + 4));
        if (at) {
            context.strokeStyle = colour("math");
            context.lineWidth = 2;
            context.strokeRect(PROBE_LEFT + at.x * dx, at.y * dy, dx, dy);
        }
    }
    function point(x, y) {
        at = {x: Math.max(0, Math.min(to.length - 1, x)), y: Math.max(0, Math.min(from.length - 1, y))};
        const one = ps[at.y][at.x];
        readout.replaceChildren(h("b", {}, `${from[at.y]} to ${to[at.x]}`), one === null ? ": there is no such transfer" : `: ${time(one)}, ${count(matrix.bytes * matrix.load / one * 1e12, "B/s")}`);
        draw();
    }
    canvas.addEventListener("pointermove", (event) => {
        const {dx, dy} = plot(), x = Math.floor((event.offsetX - PROBE_LEFT) / dx), y = Math.floor(event.offsetY / dy);
        if (x >= 0 && x < to.length && y >= 0 && y < from.length) point(x, y);
    });
    canvas.addEventListener("keydown", (event) => {
        const step = {ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1]}[event.key];
        if (!step) return;
        event.preventDefault();
        point((at?.x ?? -step[0]) + step[0], (at?.y ?? -step[1]) + step[1]);
    });
    onResize(canvas, draw);
    requestAnimationFrame(() => paint(draw));
    const all = (row) => row.filter((one) => one !== null), mean = (list) => list.reduce((a, b) => a + b, 0) / list.length;
    const few = to.length <= PROBE_TABLE;
    return [
        h("div", {class: "legends"}, legend(`time, from ${time(least)} on`, most - least, (ps) => time(least + ps))), canvas, readout,
        tableBehind(few ? "Table: all pairs" : "Table: times from each end", [
            {title: "from", of: (y) => from[y]},
            ...few ? to.map((name, x) => ({title: `to ${name}`, number: true, of: (y) => ps[y][x] === null ? "" : time(ps[y][x])}))
                : [{title: "least", number: true, of: (y) => time(Math.min(...all(ps[y])))}, {title: "mean", number: true, of: (y) => time(Math.round(mean(all(ps[y]))))}, {title: "most", number: true, of: (y) => time(Math.max(...all(ps[y])))},
                   {title: "farthest", of: (y) => to[ps[y].indexOf(Math.max(...all(ps[y])))]}],
        ], () => from.map((_, y) => y).filter((y) => all(ps[y]).length)),
    ];
}

section({
    id: "probes", title: "Probes", shows: (run) => run.probe_matrix && run.probe_matrix.ps.some((row) => row.some((one) => one !== null)),
    about: (run) => { const m = run.probe_matrix; return `What ${m.load > 1 ? `${digits(m.load)} transfers at once` : "a single transfer"} of ${bytes(m.bytes)} would take in the idle machine (${m.transfer}): from each end of a row to each of a column, in the same order. The machine's distances show as steps; what the run itself took more than this, it waited.`; },
    draw: drawProbes,
});
