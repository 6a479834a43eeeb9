// parallel.js: parallel coordinates: a line for each point through its keys and figures; brushes choose lines.

import {brush, chosen, columns, good, objectives, onChoice, pick, points, prefersLog, scaleOf, shown} from "./data.js";
import {colour, h, s, select, tableBehind} from "../dom.js";
import {whole} from "../format.js";
import {section} from "../sections.js";
import {worthOf} from "./effects.js";
import {columnLegend, heatColours, heatStep, plane} from "./plane.js";

const LINES_HIGH = 400, LINES_TOP = 62, LINES_FOOT = 26, LINES_SIDE = 46, AXES_MOST = 14, AXIS_WIDE = 78;
const LINES_MOST = 5000, WHILE_BRUSHED = 800;          // that are drawn at rest, and while a brush moves
const ROWS_MOST = 200;

// The axes: keys that differ, then objectives; those keys that explain most where there are more than fit.
function axesOf(ranked) {
    const goals = objectives.map((one) => one.column).filter((column) => column.varies);
    const keys = shown.filter((column) => column.role === "axis");
    const kept = new Set([...keys].sort((a, b) => ranked(b) - ranked(a)).slice(0, AXES_MOST - goals.length));
    const list = [...keys.filter((column) => kept.has(column)), ...goals];
    return list.length > 1 ? list : shown.slice(0, AXES_MOST);
}

section({
    id: "lines", title: "Which keys lead where", shows: () => good.length > 0 && shown.length > 1,
    about: () => `A line for each point that meets all conditions, through its keys and objectives. Drag along an axis to keep the lines that cross it there; brushes on several axes combine, and the other pictures follow. `
        + `With the keyboard, Tab goes to an axis, up and down move its brush, + and − make it wider and narrower, Escape removes it.`,
    draw: () => {
        const list = axesOf(worthOf), view = {colour: objectives[0]?.column ?? shown.at(-1)}, readout = h("p", {class: "readout", "aria-live": "polite"});
        const scales = new Map(list.map((column) => [column, scaleOf(column, prefersLog(column), 5)]));
        // Where each line crosses each axis, which no brush changes: points of one level are spread by their hashes.
        const spread = (column, a, point) => column.levels ? (parseInt(points.hash[point].slice((a * 3) % 28, (a * 3) % 28 + 4), 16) / 65535 - 0.5) * 0.5 / column.levels.length : 0;
        const places = list.map((column, a) => Float32Array.from(good, (point) => scales.get(column).at(column.values[point]) + spread(column, a, point)));
        let quick = false, wideNow = 0;
        const xOf = (i) => LINES_SIDE + i * (wideNow - 2 * LINES_SIDE) / (list.length - 1), yOf = (place) => LINES_TOP + (1 - place) * (LINES_HIGH - LINES_TOP - LINES_FOOT);

        const overlay = s("svg", {class: "brushes", "aria-hidden": "false"});
        const {canvas, redraw} = plane("lines", "Parallel coordinates; the table below has the points inside all brushes", LINES_HIGH, (context, wide) => {
            wideNow = wide;
            const scale = scaleOf(view.colour, prefersLog(view.colour)), colours = heatColours(), steps = colours.map(() => []), outside = [];
            good.forEach((point, i) => {
                const share = scale.at(view.colour.values[point]);
                (chosen.inside[point] ? steps[Number.isNaN(share) ? 0 : heatStep(share)] : outside).push(i);
            });
            const keep = Math.max(1, Math.ceil(good.length / (quick ? WHILE_BRUSHED : LINES_MOST)));
            const lines = (which, style, alpha) => {
                context.strokeStyle = style;
                context.globalAlpha = alpha;
                context.beginPath();
                for (let n = 0; n < which.length; n += keep) {
                    let pen = false;
                    for (let a = 0; a < list.length; a++) {
                        const place = places[a][which[n]];
                        if (Number.isNaN(place)) { pen = false; continue; }
                        const x = xOf(a), y = yOf(place);
                        if (pen) context.lineTo(x, y);
                        else context.moveTo(x, y);
                        pen = true;
                    }
                    if (n % (16 * keep) === 0) context.stroke(), context.beginPath();
                }
                context.stroke();
                context.globalAlpha = 1;
            };
            context.lineWidth = 1;
            const many = chosen.count / keep;
            if (chosen.brushes.size) lines(outside, colour("idle"), outside.length > 2000 ? 0.1 : 0.35);
            const order = steps.map((which, i) => [which, colours[i]]);
            if (objectives.find((one) => one.column === view.colour)?.goal === "min") order.reverse();  // the best ones are drawn last
            order.forEach(([which, style]) => lines(which, style, many > 8000 ? 0.12 : many > 1500 ? 0.25 : many > 200 ? 0.5 : 0.9));
            canvas.dataset.lines = String(chosen.count);
            drawOverlay();
        });

        // Axes, their ticks and brushes, in SVG above the canvas: they are few, and have focus.
        function drawOverlay() {
            const focused = overlay.contains(document.activeElement) ? document.activeElement.dataset.axis : null;
            overlay.setAttribute("viewBox", `0 0 ${wideNow} ${LINES_HIGH}`);
            const room = (wideNow - 2 * LINES_SIDE) / (list.length - 1);
            overlay.replaceChildren(...list.map((column, a) => {
                const scale = scales.get(column), x = xOf(a), range = chosen.brushes.get(column), high = a % 2 && room < 150;
                const name = `${column.label}${scale.unit ? `, ${scale.unit}` : ""}`, fits = Math.max(8, Math.floor((room < 150 ? 2 : 1) * room / 7.5) - 1);
                const texts = scale.ticks.map((tick) => s("text", {class: "tick", x: x + 5, y: yOf(tick.place) + 4}, tick.text.length > room / 7 ? `${tick.text.slice(0, Math.max(2, Math.floor(room / 7) - 1))}…` : tick.text));
                return s("g", {class: "axis", tabindex: 0, role: "slider", "data-axis": String(a), "aria-label": `Brush of ${name}`, "aria-valuenow": range ? Math.round(100 * (range.from + range.to) / 2) : 50,
                               "aria-valuetext": range ? `from ${Math.round(100 * range.from)} % to ${Math.round(100 * range.to)} % of the axis` : "no brush", onkeydown: (event) => move(event, column)},
                    s("rect", {class: "grip", x: x - Math.min(22, room / 2), y: LINES_TOP - 6, width: Math.min(44, room), height: LINES_HIGH - LINES_TOP - LINES_FOOT + 12}),
                    s("line", {class: "spine", x1: x, x2: x, y1: LINES_TOP, y2: LINES_HIGH - LINES_FOOT}), texts,
                    range ? s("rect", {class: "brush", x: x - 7, y: yOf(range.to), width: 14, height: Math.max(2, yOf(range.from) - yOf(range.to))}) : null,
                    s("text", {class: `label strong ${a === 0 ? "" : a === list.length - 1 ? "end" : "mid"}`, x: a === 0 ? 2 : a === list.length - 1 ? wideNow - 2 : x, y: high ? 20 : 42},
                      name.length > fits ? `${name.slice(0, fits - 1)}…` : name, s("title", {}, column.name)));
            }));
            if (focused !== null) overlay.querySelector(`[data-axis="${focused}"]`)?.focus();
        }
        const set = (column, from, to, settled) => {
            quick = !settled && good.length > WHILE_BRUSHED;
            brush(column, to - from < 0.012 ? null : {scale: scales.get(column), from: Math.max(0, from), to: Math.min(1, to)}, settled);
        };
        function move(event, column) {
            const range = chosen.brushes.get(column) ?? {from: 0.4, to: 0.6}, step = 0.05;
            const [from, to] = {ArrowUp: [step, step], ArrowDown: [-step, -step], "+": [-step, step], "-": [step, -step], Escape: [1, 0]}[event.key] ?? [];
            if (from === undefined) return;
            event.preventDefault();
            if (event.key === "Escape") return set(column, 0, 0, true);
            const width = range.to - range.from, low = Math.max(0, Math.min(1 - (event.key.startsWith("Arrow") ? width : 0.02), range.from + from));
            set(column, low, event.key.startsWith("Arrow") ? low + width : Math.min(1, range.to + to), true);
        }
        let dragged = null;
        const placeAt = (event) => {
            const box = overlay.getBoundingClientRect();
            return Math.max(0, Math.min(1, 1 - ((event.clientY - box.top) * LINES_HIGH / box.height - LINES_TOP) / (LINES_HIGH - LINES_TOP - LINES_FOOT)));
        };
        overlay.addEventListener("pointerdown", (event) => {
            const axis = event.target.closest(".axis");
            if (!axis) return;
            dragged = {column: list[Number(axis.dataset.axis)], start: placeAt(event)};
            overlay.setPointerCapture(event.pointerId);
            axis.focus();
            event.preventDefault();
        });
        const drag = (settled) => (event) => {
            if (!dragged) return;
            const place = placeAt(event);
            set(dragged.column, Math.min(dragged.start, place), Math.max(dragged.start, place), settled);
            if (settled) dragged = null;
        };
        overlay.addEventListener("pointermove", drag(false));
        overlay.addEventListener("pointerup", drag(true));
        overlay.addEventListener("pointercancel", drag(true));

        const legendBox = h("div", {class: "legends"}), showLegend = () => legendBox.replaceChildren(columnLegend(view.colour));
        const stack = h("div", {class: "stack"}, canvas, overlay);
        stack.style.minWidth = `${list.length * AXIS_WIDE}px`;
        showLegend();
        const tellCount = () => readout.replaceChildren(h("b", {}, whole(chosen.count)), ` of ${whole(good.length)} points ${chosen.brushes.size ? "are inside all brushes" : "are shown"}.${good.length > LINES_MOST ? ` Of ${Math.ceil(good.length / LINES_MOST)} lines one is drawn.` : ""}`);
        onChoice((what) => {
            if (what === "point") return;
            tellCount();
            if (what === "brush") quick = false;
            redraw();
        });
        tellCount();
        const rows = () => good.filter((point) => chosen.inside[point]).sort((a, b) => (objectives[0] ? (objectives[0].goal === "max" ? -1 : 1) * (objectives[0].column.values[a] - objectives[0].column.values[b]) : 0)).slice(0, ROWS_MOST);
        const tableBox = h("div", {}), columnsOf = () => [
            {title: "point", of: (point) => h("button", {class: "link", onclick: () => pick(point)}, points.hash[point].slice(0, 12))},
            ...list.map((column) => ({title: column.label, number: column.numbers, of: (point) => column.text(column.values[point])}))];
        const showTable = () => tableBox.replaceChildren(tableBehind(`Table: the best ${whole(Math.min(ROWS_MOST, chosen.count))} of the points inside`, columnsOf(), rows));
        onChoice((what) => what === "brush" && showTable());
        showTable();
        return [
            h("div", {class: "controls"}, h("div", {class: "keys"}, select("colour", shown.map((column) => ({value: String(column.number), title: column.label})), String(view.colour.number), (number) => { view.colour = columns[Number(number)]; showLegend(); redraw(); }),
              h("button", {class: "clear", onclick: () => { for (const column of [...chosen.brushes.keys()]) brush(column, null, true); }}, "Remove brushes"))),
            legendBox, h("div", {class: "wide"}, stack), readout, tableBox,
        ];
    },
});
