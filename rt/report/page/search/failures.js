// failures.js: points without a result, by reason.

import {data, pick, points} from "./data.js";
import {gauge, h, table} from "../dom.js";
import {percent, whole} from "../format.js";
import {section} from "../sections.js";

section({
    id: "failures", title: "Failures", shows: () => data.failures.length > 0,
    about: () => `Points that did not end well, or that a condition of the search refuses, by reason. ${data.failures.length >= data.failures_most ? "The most frequent ones are shown. " : ""}A click on an example shows its machine above.`,
    draw: () => {
        const all = data.failures.reduce((sum, one) => sum + one.count, 0), number = new Map(points.hash.map((hash, point) => [hash, point]));
        const example = (one) => !one.example ? `trial ${whole(one.trial)}`
            : number.has(one.example) ? h("button", {class: "link", onclick: () => pick(number.get(one.example))}, one.example.slice(0, 12)) : one.example.slice(0, 12);
        return [table([
            {title: "how it ended", of: (one) => h("b", {}, one.status)}, {title: "why", of: (one) => one.why ?? ""},
            {title: "points", number: true, of: (one) => whole(one.count)}, {title: "share", of: (one) => [gauge(one.count / all), percent(one.count / all)]}, {title: "example", of: example},
        ], data.failures, {label: "Failures by reason"})];
    },
});
