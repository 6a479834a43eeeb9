// plane.js: a canvas that is as sharp as the screen, and the colours of amounts on it.

import {good, prefersLog, scaleOf} from "./data.js";
import {h, onResize, paint} from "../dom.js";

// Calls `draw` with the context and the size in CSS pixels whenever the size or the colours change; returns the canvas and
// a function that draws again, at most once a frame.
export function plane(kind, label, high, draw) {
    const canvas = h("canvas", {class: kind, tabindex: 0, role: "img", "aria-label": label});
    let wide = 0, waits = false;
    const now = () => {
        waits = false;
        wide = canvas.clientWidth;
        if (!wide) return;
        const ratio = Math.max(devicePixelRatio || 1, matchMedia("print").matches ? 2 : 1), context = canvas.getContext("2d");
        canvas.width = Math.round(wide * ratio);
        canvas.height = Math.round(high * ratio);
        context.setTransform(ratio, 0, 0, ratio, 0, 0);
        context.font = `12px ${getComputedStyle(document.body).fontFamily}`;
        draw(context, wide, high);
    };
    const redraw = () => {
        if (waits) return;
        waits = true;
        requestAnimationFrame(now);
    };
    onResize(canvas, () => canvas.clientWidth !== wide && redraw());
    paint(now);
    return {canvas, redraw};
}

// Colours of shares of 0 to 1: the steps of the page's scale that differ from its background.
const FIRST_STEP = 5, STEPS = 21 - FIRST_STEP;
export function heatColours() {
    const box = h("div", {hidden: true}, Array.from({length: STEPS}, (_, i) => h("span", {class: `ramp-step b${i + FIRST_STEP}`})));
    document.body.append(box);
    const found = [...box.children].map((one) => getComputedStyle(one).backgroundColor);
    box.remove();
    return found;
}
export const heatStep = (share) => Math.round((STEPS - 1) * Math.max(0, Math.min(1, share)));

// The legend of these colours for a column: its least value, the one in the middle of its scale, and its greatest.
export function columnLegend(column) {
    const scale = scaleOf(column, prefersLog(column)), values = good.map((point) => column.values[point]).filter((value) => !Number.isNaN(scale.at(value))).sort((a, b) => scale.at(a) - scale.at(b));
    if (!values.length) return "";
    let middle = values[0];
    for (const value of values) if (Math.abs(scale.at(value) - 0.5) < Math.abs(scale.at(middle) - 0.5)) middle = value;
    return h("figure", {class: "legend"}, h("figcaption", {}, `colour: ${column.label}`),
             h("div", {class: "ramp", "aria-hidden": "true"}, Array.from({length: STEPS}, (_, i) => h("span", {class: `b${i + FIRST_STEP}`}))),
             h("div", {class: "ends"}, [values[0], middle, values.at(-1)].map((value) => h("span", {}, column.text(value)))));
}
