// effects.js: main effects: what each key is worth for a figure, over the points of the page.

import {chosen, columns, data, figures, good, objectives, onChoice, prefersLog, scaleOf, shown} from "./data.js";
import {gauge, h, s, select, table} from "../dom.js";
import {percent, whole} from "../format.js";
import {section} from "../sections.js";

const EFFECT_WIDE = 300, EFFECT_HIGH = 132, EFFECT_LEFT = 50, EFFECT_FOOT = 22, EFFECT_TOP = 8, BINS = 8, EFFECTS_SHOWN = 12;

const mean = (list) => list.reduce((sum, value) => sum + value, 0) / list.length;
const quantile = (sorted, share) => sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))];

// Groups of points by a key: its levels, or as many equal groups of its numbers as BINS.
function groupsOf(column, list) {
    const groups = new Map();
    if (column.levels) {
        for (const level of column.levels) groups.set(level, []);
        for (const point of list) groups.get(column.values[point])?.push(point);
        return [...groups].map(([level, members]) => ({text: column.text(level), members})).filter((group) => group.members.length);
    }
    const sorted = list.filter((point) => typeof column.values[point] === "number").sort((a, b) => column.values[a] - column.values[b]), bins = Math.min(BINS, sorted.length);
    return Array.from({length: bins}, (_, i) => sorted.slice(Math.floor(i * sorted.length / bins), Math.floor((i + 1) * sorted.length / bins)))
        .map((members) => ({text: column.text(column.values[members[Math.floor(members.length / 2)]]), members}));
}

// A key's effect on a figure: its groups, with mean, tenth and ninetieth percentile, and the share of the figure's variance
// that lies between groups. Of a figure that is better seen on a logarithmic scale, of its logarithm.
function effectOf(column, target, list) {
    const log = prefersLog(target), of = (point) => log ? Math.log(target.values[point]) : target.values[point], back = (value) => log ? Math.exp(value) : value;
    const known = list.filter((point) => typeof target.values[point] === "number" && (!log || target.values[point] > 0));
    if (known.length < 2) return {column, share: 0, groups: []};
    const all = mean(known.map(of)), total = known.reduce((sum, point) => sum + (of(point) - all) ** 2, 0);
    let between = 0;
    const groups = groupsOf(column, known).map(({text, members}) => {
        const values = members.map(of).sort((a, b) => a - b), middle = mean(values);
        between += values.length * (middle - all) ** 2;
        return {text, count: values.length, mean: back(middle), low: back(quantile(values, 0.1)), high: back(quantile(values, 0.9))};
    });
    return {column, groups, share: total > 0 ? between / total : 0};
}

// The most that a key explains of any objective.
export function worthOf(column) {
    return Math.max(0, ...objectives.map((one) => effectOf(column, one.column, good).share));
}

// The column, of several, that is worth most.
export const mostWorth = (list) => list.map((column) => ({column, worth: column.role === "axis" ? worthOf(column) : -1})).reduce((a, b) => !a || b.worth > a.worth ? b : a, null)?.column;

function drawEffect(effect, target) {
    const scale = scaleOf(target, prefersLog(target), 3), {groups} = effect;
    const x = (i) => EFFECT_LEFT + (i + 0.5) / groups.length * (EFFECT_WIDE - EFFECT_LEFT), y = (value) => EFFECT_TOP + (1 - scale.at(value)) * (EFFECT_HIGH - EFFECT_TOP - EFFECT_FOOT);
    const every = Math.ceil(groups.length / Math.max(2, Math.floor((EFFECT_WIDE - EFFECT_LEFT) / (10 + 7 * Math.max(...groups.map((group) => group.text.length))))));
    const told = scale.ticks.filter((tick, i) => i % Math.ceil(scale.ticks.length / 4) === 0);
    return h("figure", {class: "effect", "data-key": effect.column.name},
        h("figcaption", {title: effect.column.name}, h("b", {}, effect.column.label), " ", percent(effect.share)),
        s("svg", {viewBox: `0 0 ${EFFECT_WIDE} ${EFFECT_HIGH}`, role: "img", "aria-label": `Effect of ${effect.column.label}; the table above has its share`},
          told.map((tick) => [s("line", {class: "grid", x1: EFFECT_LEFT, x2: EFFECT_WIDE, y1: EFFECT_TOP + (1 - tick.place) * (EFFECT_HIGH - EFFECT_TOP - EFFECT_FOOT), y2: EFFECT_TOP + (1 - tick.place) * (EFFECT_HIGH - EFFECT_TOP - EFFECT_FOOT)}),
                              s("text", {class: "tick end", x: EFFECT_LEFT - 5, y: EFFECT_TOP + (1 - tick.place) * (EFFECT_HIGH - EFFECT_TOP - EFFECT_FOOT) + 4}, tick.text)]),
          groups.map((group, i) => s("g", {}, s("title", {}, `${group.text}: mean ${target.text(group.mean)}, ${whole(group.count)} points, 80 % from ${target.text(group.low)} to ${target.text(group.high)}`),
              s("line", {class: "spread", x1: x(i), x2: x(i), y1: y(group.low), y2: y(group.high)}))),
          s("polyline", {class: "mean", points: groups.map((group, i) => `${x(i).toFixed(1)},${y(group.mean).toFixed(1)}`).join(" ")}),
          groups.map((group, i) => [s("circle", {class: "mean-dot", cx: x(i), cy: y(group.mean), r: 3.5}), i % every ? null : s("text", {class: "tick mid", x: x(i), y: EFFECT_HIGH - 6}, group.text)])));
}

section({
    id: "effects", title: "What each key is worth", shows: () => good.length > 1 && figures.length > 0 && shown.some((column) => column.role === "axis"),
    about: () => "The share of a figure's variance that lies between the levels of a key: 100 % if the key alone decides the figure, 0 % if its mean is the same at each level. "
        + "Lines join the means of levels; bars reach from the tenth to the ninetieth percentile. "
        + (["grid", "random", "lhs", "sobol"].includes(data.search.method) ? "" : `The method ${data.search.method ?? ""} tries good regions more often, so these are means over the points that it tried, not over the space. `) + "Brushes above restrict the points.",
    draw: () => {
        const view = {target: objectives[0]?.column ?? figures[0]}, box = h("div", {class: "effects"}), list = h("div", {}), count = h("p", {class: "note"});
        const keys = shown.filter((column) => column.role === "axis");
        const show = () => {
            const inside = good.filter((point) => chosen.inside[point]);
            const effects = keys.map((column) => effectOf(column, view.target, inside)).sort((a, b) => b.share - a.share);
            count.replaceChildren(`Over ${whole(inside.length)} points.`);
            list.replaceChildren(table([
                {title: "key", of: (effect) => h("span", {title: effect.column.name}, effect.column.label)},
                {title: `of ${view.target.label}`, of: (effect) => [gauge(effect.share), percent(effect.share)]},
                {title: "best level", of: (effect) => bestLevel(effect, view.target)},
            ], effects, {label: "Main effects"}));
            box.replaceChildren(...effects.filter((effect) => effect.groups.length > 1).slice(0, EFFECTS_SHOWN).map((effect) => drawEffect(effect, view.target)));
        };
        onChoice((what) => what === "brush" && show());
        show();
        const targets = [...new Set([...objectives.map((one) => one.column), ...figures])].filter((column) => column.varies && column.numbers);
        return [h("div", {class: "controls"}, h("div", {class: "keys"}, select("figure", targets.map((column) => ({value: String(column.number), title: column.label})), String(view.target.number), (number) => { view.target = columns[Number(number)]; show(); }))),
                count, list, box];
    },
});

function bestLevel(effect, target) {
    const largest = objectives.find((one) => one.column === target)?.goal === "max";
    const best = effect.groups.reduce((a, b) => !a || (largest ? b.mean > a.mean : b.mean < a.mean) ? b : a, null);
    return best ? `${best.text} (mean ${target.text(best.mean)})` : "";
}
