// @ts-check
/**
 * A seeded generator of numbers in [0, 1) (mulberry32), so that every drop can be repeated.
 * @param {number} seed
 */
export function randomOf(seed) {
  let state = seed >>> 0;
  const next = () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let x = Math.imul(state ^ (state >>> 15), state | 1);
    x ^= x + Math.imul(x ^ (x >>> 7), x | 61);
    return ((x ^ (x >>> 14)) >>> 0) / 4294967296;
  };
  return {
    next,
    /** @param {number} low @param {number} high */
    between: (low, high) => low + (high - low) * next(),
    /** @param {number} low @param {number} high both included */
    whole: (low, high) => low + Math.floor((high - low + 1) * next()),
  };
}
