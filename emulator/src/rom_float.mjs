// @ts-check
/**
 * The arithmetic behind the boot ROM's tables for single and double precision (RP2040 datasheet
 * 2.8.3.2): which registers each function reads, which it writes, and how many cycles it costs.
 *
 * Invariants
 * - A denormal operand or result becomes zero of the same sign. A NaN operand counts as infinity
 *   of its sign, and no result is a NaN: where IEEE 754 gives a NaN, the result is infinite. Other
 *   results are the nearest number, ties to even.
 * - Conversions to integers round towards minus infinity and are clamped to the range of their
 *   type.
 * - The cost of a function does not depend on its operands. It is near the mean in the
 *   datasheet, return included; README.md has the list.
 */

/**
 * A native function: its cost, and its effect on the registers.
 * @typedef {{ cycles: number, call: (r: Int32Array) => void }} Native
 */

const buffer = new DataView(new ArrayBuffer(8));

/** @param {number} bits */
function toSingle(bits) {
  const exponent = bits & 0x7f800000;
  if (exponent === 0) return bits < 0 ? -0 : 0;
  if (exponent === 0x7f800000) return bits < 0 ? -Infinity : Infinity;
  buffer.setInt32(0, bits);
  return buffer.getFloat32(0);
}

/** @param {number} value @param {number} [sign] the sign of the infinity in place of a NaN */
function ofSingle(value, sign = 1) {
  buffer.setFloat32(0, Number.isNaN(value) ? sign * Infinity : value);
  const bits = buffer.getInt32(0);
  return bits & 0x7f800000 ? bits : bits & 0x80000000;
}

/** @param {number} low @param {number} high */
function toDouble(low, high) {
  const exponent = high & 0x7ff00000;
  if (exponent === 0) return high < 0 ? -0 : 0;
  if (exponent === 0x7ff00000) return high < 0 ? -Infinity : Infinity;
  buffer.setInt32(0, high);
  buffer.setInt32(4, low);
  return buffer.getFloat64(0);
}

/**
 * Puts a double into two registers.
 * @param {Int32Array} r
 * @param {number} at
 * @param {number} value
 * @param {number} [sign]
 */
function putDouble(r, at, value, sign = 1) {
  buffer.setFloat64(0, Number.isNaN(value) ? sign * Infinity : value);
  const high = buffer.getInt32(0);
  const normal = (high & 0x7ff00000) !== 0;
  r[at] = normal ? buffer.getInt32(4) : 0;
  r[at + 1] = normal ? high : high & 0x80000000;
}

/** @param {number} value */
const signOf = (value) => (value < 0 || Object.is(value, -0) ? -1 : 1);

/** @param {number} a @param {number} b */
const compare = (a, b) => (a < b ? -1 : a > b ? 1 : 0);

/**
 * value * 2^n without loss, also where 2 ** n alone would overflow.
 * @param {number} value
 * @param {number} n
 */
function scale(value, n) {
  for (; n > 1000; n -= 1000) value *= 2 ** 1000;
  for (; n < -1000; n += 1000) value *= 2 ** -1000;
  return value * 2 ** n;
}

/**
 * Rounds towards minus infinity, clamped to the integers of `bits` bits.
 * @param {number} value
 * @param {number} bits
 * @param {boolean} signed
 */
function toInteger(value, bits, signed) {
  const low = signed ? -(2n ** BigInt(bits - 1)) : 0n;
  const high = signed ? 2n ** BigInt(bits - 1) - 1n : 2n ** BigInt(bits) - 1n;
  if (value === Infinity) return high;
  if (value === -Infinity) return low;
  const whole = BigInt(Math.floor(value));
  return whole < low ? low : whole > high ? high : whole;
}

/** @param {Int32Array} r @param {bigint} value @param {number} bits */
function putInteger(r, value, bits) {
  r[0] = Number(BigInt.asIntN(32, value));
  if (bits === 64) r[1] = Number(BigInt.asIntN(32, value >> 32n));
}

/** @param {Int32Array} r @param {boolean} signed */
function long(r, signed) {
  const value = (BigInt(r[1]) << 32n) | BigInt(r[0] >>> 0);
  return signed ? value : BigInt.asUintN(64, value);
}

/**
 * The nearest number to integer * 2^-n with at most 24 significant bits, as a double; ties to even.
 * Rounding to double first would round twice.
 * @param {bigint} integer @param {number} n
 */
function nearestSingle(integer, n) {
  const sign = integer < 0n ? -1 : 1;
  let magnitude = integer < 0n ? -integer : integer;
  const spare = magnitude.toString(2).length - 24;
  if (spare <= 0) return scale(sign * Number(magnitude), -n);
  const half = 1n << BigInt(spare - 1);
  const rest = magnitude & ((half << 1n) - 1n);
  magnitude >>= BigInt(spare);
  if (rest > half || (rest === half && magnitude & 1n)) magnitude += 1n;
  return scale(sign * Number(magnitude), spare - n);
}

/**
 * The differences between the two precisions: `get` reads an operand, `put` writes a result,
 * `whole` converts an integer.
 * @typedef {{
 *   words: 1 | 2,
 *   get: (r: Int32Array, operand: 0 | 1) => number,
 *   put: (r: Int32Array, value: number, sign?: number, at?: number) => void,
 *   whole: (integer: bigint, n: number) => number,
 * }} Precision
 */

/** @type {Precision} */
const single = {
  words: 1,
  get: (r, operand) => toSingle(r[operand]),
  put: (r, value, sign, at = 0) => void (r[at] = ofSingle(value, sign)),
  whole: nearestSingle,
};
/** @type {Precision} */
const double = {
  words: 2,
  get: (r, operand) => toDouble(r[2 * operand], r[2 * operand + 1]),
  put: (r, value, sign, at = 0) => putDouble(r, at, value, sign),
  whole: (integer, n) => scale(Number(integer), -n),
};

/**
 * The 32 entries of a table, in its order.
 * @param {Precision} p
 * @param {number[]} costs
 * @param {(r: Int32Array) => void} other the entry that converts to the other precision
 * @returns {Native[]}
 */
function table(p, costs, other) {
  /** @param {(a: number, b: number) => number} f @param {(a: number, b: number) => number} sign */
  const binary = (f, sign) => (/** @type {Int32Array} */ r) => {
    const a = p.get(r, 0);
    const b = p.get(r, 1);
    p.put(r, f(a, b), sign(a, b));
  };
  /** @param {(a: number) => number} f */
  const unary = (f) => (/** @type {Int32Array} */ r) => p.put(r, f(p.get(r, 0)));
  /** @param {number} bits @param {boolean} signed @param {boolean} fixed */
  const integer = (bits, signed, fixed) => (/** @type {Int32Array} */ r) =>
    putInteger(r, toInteger(scale(p.get(r, 0), fixed ? r[p.words] : 0), bits, signed), bits);
  /** @param {number} bits @param {boolean} signed @param {boolean} fixed */
  const number = (bits, signed, fixed) => (/** @type {Int32Array} */ r) => {
    const value = bits === 64 ? long(r, signed) : BigInt(signed ? r[0] : r[0] >>> 0);
    p.put(r, p.whole(value, fixed ? r[bits / 32] : 0));
  };
  const order = (/** @type {Int32Array} */ r) => void (r[0] = compare(p.get(r, 0), p.get(r, 1)));
  const sineAndCosine = (/** @type {Int32Array} */ r) => {
    const angle = p.get(r, 0);
    p.put(r, Math.sin(angle));
    p.put(r, Math.cos(angle), 1, p.words);
  };
  const product = (/** @type {number} */ a, /** @type {number} */ b) => signOf(a) * signOf(b);
  const first = (/** @type {number} */ a) => signOf(a);
  const logarithm = (/** @type {number} */ a) => (a <= 0 ? -Infinity : Math.log(a));
  const root = (/** @type {number} */ a) => (a < 0 ? -Infinity : Math.sqrt(a));
  const calls = [
    binary((a, b) => a + b, first),
    binary((a, b) => a - b, first),
    binary((a, b) => a * b, product),
    binary((a, b) => a / b, product),
    order,
    order,
    unary(root),
    integer(32, true, false),
    integer(32, true, true),
    integer(32, false, false),
    integer(32, false, true),
    number(32, true, false),
    number(32, true, true),
    number(32, false, false),
    number(32, false, true),
    unary(Math.cos),
    // The SDK's sincosf takes the cosine from the register after the sine.
    sineAndCosine,
    unary(Math.tan),
    sineAndCosine,
    unary(Math.exp),
    unary(logarithm),
    order,
    binary((a, b) => Math.atan2(a, b), first),
    number(64, true, false),
    number(64, true, true),
    number(64, false, false),
    number(64, false, true),
    integer(64, true, false),
    integer(64, true, true),
    integer(64, false, false),
    integer(64, false, true),
    other,
  ];
  return calls.map((call, n) => ({ call, cycles: costs[n] }));
}

/** The function names by their place in a table, for documents and messages. */
export const NAMES = [
  'add',
  'sub',
  'mul',
  'div',
  'cmp',
  'cmp',
  'sqrt',
  'to int',
  'to fix',
  'to uint',
  'to ufix',
  'from int',
  'from fix',
  'from uint',
  'from ufix',
  'cos',
  'sin',
  'tan',
  'sincos',
  'exp',
  'ln',
  'cmp',
  'atan2',
  'from int64',
  'from fix64',
  'from uint64',
  'from ufix64',
  'to int64',
  'to fix64',
  'to uint64',
  'to ufix64',
  'to the other precision',
];

export const SINGLE_COSTS = [
  71, 74, 58, 71, 25, 25, 63, 37, 39, 38, 38, 55, 53, 55, 55, 587, 577, 653, 600, 524, 789, 25, 599,
  55, 55, 55, 55, 53, 53, 52, 52, 23,
];
export const DOUBLE_COSTS = [
  91, 95, 155, 183, 39, 39, 169, 75, 74, 63, 63, 69, 68, 64, 62, 1617, 1618, 1891, 1700, 804, 428,
  39, 2168, 61, 61, 60, 60, 64, 63, 51, 52, 23,
];

/** soft_float_table. */
export const SINGLE = table(single, SINGLE_COSTS, (r) => putDouble(r, 0, toSingle(r[0])));
/** soft_double_table. */
export const DOUBLE = table(
  double,
  DOUBLE_COSTS,
  (r) => void (r[0] = ofSingle(toDouble(r[0], r[1]))),
);
