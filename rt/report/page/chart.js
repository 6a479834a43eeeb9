// chart.js: shares over time, by dygraphs, in the colours of the page.

import {colour, h, paint} from "./dom.js";
import {percent, time, timeUnit} from "./format.js";

// The plug-in of legends sets inline styles, which the page's policy forbids.
Dygraph.PLUGINS = Dygraph.PLUGINS.filter((plugin) => plugin !== Dygraph.Plugins.Legend);

const BAND = 40, BAND_FULL = 0.84;                      // height of a band in pixels; what a share of 1 takes of it

// Fills the steps of a series down to the foot of its band.
function plotBand(event) {
    const {drawingContext: context, points, dygraph, seriesCount} = event, foot = dygraph.toDomYCoord(seriesCount - 1 - event.seriesIndex);
    context.fillStyle = event.color;
    context.beginPath();
    context.moveTo(points[0].canvasx, foot);
    for (let i = 0; i + 1 < points.length; i++) {
        context.lineTo(points[i].canvasx, points[i].canvasy);
        context.lineTo(points[i + 1].canvasx, points[i].canvasy);
    }
    context.lineTo(points.at(-1).canvasx, foot);
    context.fill();
}

// A band for each series {name, colour, values}, the first on top; `pick` is called with the frame that is clicked.
export function timeChart(frames, series, pick) {
    const unit = timeUnit(frames.width_ps * frames.count), step = frames.width_ps / unit.ps, bands = series.length;
    const box = h("div", {class: "chart", role: "img", "aria-label": "Busy shares over time; the table below has the figures of the whole run"});
    const readout = h("p", {class: "readout", "aria-live": "polite"});
    const rest = () => readout.replaceChildren("Drag over the chart to zoom, double-click to zoom out; a click shows that time on the floorplan.");
    const foot = (i) => bands - 1 - i;
    const rows = Array.from({length: frames.count + 1}, (_, frame) =>
        [frame * step, ...series.map((one, i) => foot(i) + BAND_FULL * one.values[Math.min(frame, frames.count - 1)])]);
    const colours = () => ({colors: series.map((one) => colour(one.colour)), axisLineColor: colour("muted"), gridLineColor: colour("line")});
    const start = () => {
        box.style.height = `${bands * BAND + 44}px`;
        const graph = new Dygraph(box, rows, {
            labels: ["t", ...series.map((one) => one.name)], legend: "never", plotter: plotBand, highlightCircleSize: 0, ...colours(),
            axes: {x: {axisLabelFormatter: (t) => String(Number(t.toPrecision(6))), drawGrid: false, pixelsPerLabel: 70},
                   y: {valueRange: [0, bands], axisLabelWidth: 104, drawGrid: true,
                       ticker: () => [...series.map((one, i) => ({v: foot(i) + BAND_FULL / 2, label: one.name})), ...series.map((_, i) => ({v: foot(i)}))]}},
            xlabel: `time, ${unit.name}`,
            highlightCallback: (event, x) => {
                const frame = Math.min(frames.count - 1, Math.floor(x / step + 0.5));
                readout.replaceChildren(h("b", {}, time(frame * frames.width_ps)), ": ", series.map((one) => `${one.name} ${percent(one.values[frame])}`).join(", "));
            },
            unhighlightCallback: rest,
            clickCallback: (event, x) => pick(Math.max(0, Math.min(frames.count - 1, Math.floor(x / step)))),
        });
        const picture = box.firstElementChild;
        paint(() => {
            picture.style.zoom = box.clientWidth / parseFloat(picture.style.width);    // on paper: Chromium prints no canvas whose size has changed just before
            graph.updateOptions(colours());
        });
    };
    rest();
    return {element: h("div", {}, box, readout), start};
}
