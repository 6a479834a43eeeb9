// drawn.mjs: pages whose frames are drawn.

// Waits until what is drawn in a frame is drawn: after a load, a change of colours or of sizes, which are noticed in one frame
// and drawn in the next.
export const drawn = (page) => page.evaluate(() => new Promise((done) => {
    let left = 4;
    const next = () => left-- ? requestAnimationFrame(next) : done();
    next();
}));
