// looks.mjs: what a reader sees to be wrong with a page.

import {inflateSync} from "node:zlib";

// Evaluated in the page.
function seen() {
    const told = (text) => text.trim().slice(0, 40), isShown = (box) => box.width > 0 && box.height > 0;
    const overlaps = [...document.querySelectorAll("main svg:not(.plan)")].flatMap((svg) => {
        const boxes = [...svg.querySelectorAll("text")].map((one) => ({told: one.textContent, box: one.getBoundingClientRect()})).filter((one) => one.box.width > 0);
        return boxes.flatMap((a, i) => boxes.slice(i + 1).filter((b) => a.box.left < b.box.right - 1 && b.box.left < a.box.right - 1 && a.box.top < b.box.bottom - 3 && b.box.top < a.box.bottom - 3).map((b) => `${a.told} / ${b.told}`));
    });

    const cut = [...document.querySelectorAll("main svg")].flatMap((svg) => {
        const paper = svg.getBoundingClientRect();
        return [...svg.querySelectorAll("text")].map((one) => ({told: one.textContent, box: one.getBoundingClientRect()})).filter(({box}) =>
            isShown(box) && (box.left < paper.left - 1 || box.right > paper.right + 1 || box.top < paper.top - 2 || box.bottom > paper.bottom + 2)).map((one) => one.told);
    });

    // Words of tables and figures that go on in another line; hashes and names of files are no words.
    const linesOf = (node, from, to) => {
        const range = document.createRange();
        range.setStart(node, from);
        range.setEnd(node, to);
        return new Set([...range.getClientRects()].map((box) => Math.round(box.top))).size;
    };
    const broken = [], faint = new Set();
    const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    const colours = document.createElement("canvas").getContext("2d", {willReadFrequently: true});
    const luminance = (colour) => {
        colours.fillStyle = colour;
        colours.fillRect(0, 0, 1, 1);
        const [r, g, b] = [...colours.getImageData(0, 0, 1, 1).data].map((n) => n / 255).map((n) => n <= 0.04045 ? n / 12.92 : ((n + 0.055) / 1.055) ** 2.4);
        return 0.2126 * r + 0.7152 * g + 0.0722 * b;
    };
    const isClear = (colour) => colour === "transparent" || /, 0\)$/.test(colour);
    while (texts.nextNode()) {
        const node = texts.currentNode, holder = node.parentElement;
        if (!node.data.trim() || !isShown(holder.getBoundingClientRect()) || holder.closest("svg, :disabled")) continue;
        if (holder.closest("td, th, .tile .figure") && !holder.closest("#what, .link"))
            for (const word of node.data.matchAll(/[\d.,]+\s(%|[kMGTPµnpm]?i?(s|B|FLOP)\b)|[\w%.]+/g))
                if (word[0].length <= 20 && linesOf(node, word.index, word.index + word[0].length) > 1) broken.push(word[0]);
        let behind = holder;
        while (behind && isClear(getComputedStyle(behind).backgroundColor)) behind = behind.parentElement;
        const [a, b] = [luminance(getComputedStyle(holder).color), luminance(behind ? getComputedStyle(behind).backgroundColor : "white")];
        const contrast = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
        if (contrast < 4.5) faint.add(`${told(node.data)}: ${contrast.toFixed(1)}`);
    }
    const wide = document.documentElement.scrollWidth - innerWidth;
    return {wide: wide > 0 ? [wide] : [], overlaps, cut, broken, faint: [...faint]};
}

// What is wrong with a page as it is shown: it is wider than its window, labels of pictures lie over one another or are
// cut off, words are broken, texts have a contrast below 4.5 to 1. Empty if nothing is.
export async function wrongLooks(page) {
    return Object.entries(await page.evaluate(seen)).filter(([, found]) => found.length).map(([what, found]) => `${what}: ${found.slice(0, 5).join("; ")}`);
}

// How large a PDF of Chromium shows its page: 1, and less if something is too wide for the paper.
export function paperScale(pdf) {
    for (let at = pdf.indexOf("stream"); at >= 0; at = pdf.indexOf("stream", at + 6)) {
        let text = "";
        try { text = inflateSync(pdf.subarray(at + (pdf[at + 6] === 13 ? 8 : 7))).toString("latin1"); } catch { continue; }
        const scale = /^[-.\d ]+cm\s[^]{0,200}?q\s([\d.]+) 0 0 \1 [\d.]+ [\d.]+ cm/.exec(text);
        if (scale) return Number(scale[1]) * 96 / 300;
    }
    return 0;
}
