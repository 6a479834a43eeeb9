// scatter.js: any two columns against each other, coloured by a third, with the front.

import {colour, h, select, tableBehind} from "../dom.js";
import {bestOf, chosen, columns, data, frontPoints, good, isGood, objectives, onChoice, pick, pointCount, points, prefersLog, scaleOf, shown} from "./data.js";
import {mostWorth} from "./effects.js";
import {columnLegend, heatColours, heatStep, plane} from "./plane.js";
import {section} from "../sections.js";

const SCATTER_HIGH = 460, MARGIN = {left: 62, right: 16, top: 14, foot: 46}, DOT = 4, JITTER = 0.55, REACH = 24;

const optionsOf = (list) => list.map((column) => ({value: String(column.number), title: column.label}));

// Moves points that share a level apart, always in the same way.
const jitterOf = (column, point, digits) => column.levels ? (parseInt(points.hash[point].slice(digits, digits + 4), 16) / 65535 - 0.5) * JITTER / column.levels.length : 0;

function drawTicks(context, scales, names, wide, high) {
    const {left, right, top, foot} = MARGIN;
    context.strokeStyle = colour("line");
    context.fillStyle = colour("muted");
    context.lineWidth = 1;
    context.beginPath();
    context.textAlign = "center";
    let end = -Infinity;
    for (const tick of scales.x.ticks) {
        const x = left + tick.place * (wide - left - right), half = context.measureText(tick.text).width / 2;
        context.moveTo(x, top), context.lineTo(x, high - foot);
        if (x - half > end + 6 && x + half < wide) context.fillText(tick.text, x, high - foot + 17), end = x + half;
    }
    context.textAlign = "right";
    for (const tick of scales.y.ticks) {
        const y = high - foot - tick.place * (high - top - foot);
        context.moveTo(left, y), context.lineTo(wide - right, y);
        context.fillText(tick.text, left - 7, y + 4, left - 9);
    }
    context.stroke();
    context.fillStyle = colour("ink");
    context.fillText(names.x, wide - right, high - 8);
    context.textAlign = "left";
    context.fillText(names.y, 2, 11);
}

section({
    id: "front", title: "The front", shows: () => good.length > 0 && shown.length > 1,
    about: () => "Each dot is a point of the search that ran and meets all conditions. "
        + (objectives.length > 1 ? "Dots with a ring are on the front: no point is better in one objective and at least as good in all others. " : "")
        + (points.state.some((state) => state === 1) ? "Grey dots are infeasible. " : "") + "Points of one level of a key are moved apart a little, to be seen."
        + (data.shown < data.counts.points ? ` The page shows ${pointCount.toLocaleString("en-US")} of ${data.counts.points.toLocaleString("en-US")} points: all of the front, and others at random.` : ""),
    draw: () => {
        const first = objectives[0]?.column ?? shown.at(-1), second = objectives.find((one) => one.column.varies && one.column !== first)?.column ?? shown.find((column) => column !== first);
        const view = {x: second, y: first, colour: mostWorth(shown.filter((column) => column !== first && column !== second)) ?? first, log: {x: prefersLog(second), y: prefersLog(first)}};
        const legendBox = h("div", {class: "legends"}), readout = h("p", {class: "readout", "aria-live": "polite"});
        let places = [], pale = null, hovered = -1;

        const tellPoint = (point) => point < 0
            ? readout.replaceChildren("Point at a dot for its figures; a click shows its machine below. Arrow keys go along the front.")
            : readout.replaceChildren(h("b", {}, points.hash[point].slice(0, 12)), `: ${[...new Set([view.x, view.y, view.colour, ...objectives.map((one) => one.column)])].map((column) => `${column.label} ${column.text(column.values[point])}`).join(", ")}`);

        const {canvas, redraw} = plane("scatter", "Scatter of points; the table below has the front", SCATTER_HIGH, (context, wide, high) => {
            const narrow = wide < 600, scales = {x: scaleOf(view.x, view.log.x, narrow ? 3 : 7), y: scaleOf(view.y, view.log.y)}, {left, right, top, foot} = MARGIN;
            const named = (axis) => `${view[axis].label}${scales[axis].unit ? `, ${scales[axis].unit}` : ""}`;
            drawTicks(context, scales, {x: named("x"), y: named("y")}, wide, high);
            const scale = scaleOf(view.colour, prefersLog(view.colour)), colours = heatColours(), steps = colours.map(() => []), infeasible = [], outside = [];
            places = [];
            for (let point = 0; point < pointCount; point++) {
                if (points.state[point] > 1) continue;
                const x = left + (scales.x.at(view.x.values[point]) + jitterOf(view.x, point, 0)) * (wide - left - right), y = high - foot - (scales.y.at(view.y.values[point]) + jitterOf(view.y, point, 4)) * (high - top - foot);
                if (Number.isNaN(x + y) || x < left || x > wide - right || y < top || y > high - foot) continue;
                const one = {point, x, y}, share = scale.at(view.colour.values[point]);
                places.push(one);
                if (!isGood(point)) infeasible.push(one);
                else if (!chosen.inside[point]) outside.push(one);
                else steps[Number.isNaN(share) ? 0 : heatStep(share)].push(one);
            }
            const dots = (list, style, size, alpha) => {
                context.fillStyle = style;
                context.globalAlpha = alpha;
                for (const {x, y} of list) context.fillRect(x - size / 2, y - size / 2, size, size);
                context.globalAlpha = 1;
            };
            pale = colour("idle");
            dots(infeasible, pale, DOT - 1, 0.9);
            dots(outside, pale, DOT - 1, 0.7);
            steps.forEach((list, i) => dots(list, colours[i], DOT, places.length > 4000 ? 0.75 : 1));
            const byPoint = new Map(places.map((one) => [one.point, one]));
            const onFront = frontPoints.map((point) => byPoint.get(point)).filter(Boolean);
            context.strokeStyle = colour("math");
            context.lineWidth = 1.6;
            if (objectives.length === 2 && new Set([view.x, view.y, ...objectives.map((one) => one.column)]).size === 2) {
                const goalOfX = objectives.find((one) => one.column === view.x).goal;
                const line = [...onFront].sort((a, b) => goalOfX === "max" ? b.x - a.x : a.x - b.x);
                context.beginPath();
                line.forEach(({x, y}, i) => i ? (context.lineTo(x, line[i - 1].y), context.lineTo(x, y)) : context.moveTo(x, y));
                context.stroke();
            }
            for (const {x, y} of onFront) context.beginPath(), context.arc(x, y, onFront.length > 300 ? 3 : 4.5, 0, 2 * Math.PI), context.stroke();
            for (const [point, radius] of [[chosen.point, 8], [hovered, 7]]) {
                const at = byPoint.get(point);
                if (!at) continue;
                context.strokeStyle = colour(point === chosen.point ? "ink" : "accent");
                context.lineWidth = 2;
                context.beginPath(), context.arc(at.x, at.y, radius, 0, 2 * Math.PI), context.stroke();
            }
            canvas.dataset.drawn = String(places.length);
        });

        const nearest = (event) => {
            const box = canvas.getBoundingClientRect(), x = event.clientX - box.left, y = event.clientY - box.top;
            let best = -1, least = REACH ** 2;
            for (const one of places) {
                const far = (one.x - x) ** 2 + (one.y - y) ** 2 - (points.front[one.point] ? 16 : 0);
                if (far < least) least = far, best = one.point;
            }
            return best;
        };
        const hover = (point) => {
            if (point === hovered) return;
            hovered = point;
            tellPoint(point);
            redraw();
        };
        canvas.addEventListener("pointermove", (event) => hover(nearest(event)));
        canvas.addEventListener("pointerleave", () => hover(-1));
        canvas.addEventListener("click", (event) => {
            const point = nearest(event);
            if (point >= 0) pick(point);
        });
        canvas.addEventListener("keydown", (event) => {
            const step = {ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1}[event.key], list = frontPoints.length ? frontPoints : good;
            if (!step) return;
            event.preventDefault();
            pick(list[(list.indexOf(chosen.point) + step + list.length) % list.length]);
            tellPoint(chosen.point);
        });
        onChoice(redraw);

        const showLegend = () => legendBox.replaceChildren(columnLegend(view.colour));
        const show = () => {
            showLegend();
            tellPoint(-1);
            redraw();
        };
        const logBox = (axis) => h("label", {class: "check"}, h("input", {type: "checkbox", "data-log": axis, checked: view.log[axis], onchange: (event) => { view.log[axis] = event.target.checked; redraw(); }}), `${axis} logarithmic`);
        const checks = h("div", {class: "checks"}, logBox("x"), logBox("y"));
        const choose = (what) => (number) => {
            view[what] = columns[Number(number)];
            if (what !== "colour") {
                view.log[what] = prefersLog(view[what]);
                checks.querySelector(`[data-log=${what}]`).checked = view.log[what];
            }
            show();
        };
        show();
        return [
            h("div", {class: "controls"}, h("div", {class: "keys"}, select("across", optionsOf(shown), String(view.x.number), choose("x")), select("up", optionsOf(shown), String(view.y.number), choose("y")),
              select("colour", optionsOf(shown), String(view.colour.number), choose("colour")), checks)),
            legendBox, canvas, readout,
            tableBehind(`Table: ${frontPoints.length ? `the front, ${frontPoints.length} ${frontPoints.length === 1 ? "point" : "points"}` : "the best points"}`, [
                {title: "point", of: (point) => h("button", {class: "link", onclick: () => pick(point)}, points.hash[point].slice(0, 12))},
                ...[...objectives.map((one) => one.column), ...columns.filter((column) => column.role === "axis" && column.varies)].map((column) => ({title: column.label, number: column.numbers, of: (point) => column.text(column.values[point])})),
            ], () => frontPoints.length ? frontPoints : objectives.map(bestOf).filter((point) => point >= 0)),
        ];
    },
});
