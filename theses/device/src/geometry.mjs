// @ts-check
/**
 * The tunnelling ball as geometry: how the ball falls, the edges of the photogates, and whether the
 * ball fits through the turning disc.
 *
 * Lengths in metres, times in seconds, angles in radians. All numbers follow from the
 * dimensions of the device (thesis 8.1-8.3), none from a controller.
 *
 * Invariants
 * - The fall has one constant acceleration, the one that covers `fall` in the time measured on the
 *   device: gravity less the drag of the air that the ball pushes out of the tube. `fall` ends when
 *   the ball's lowest point is level with the tube's end, the disc's upper face.
 * - "Arrival" is the moment when the ball's centre is at the disc's middle plane. The ball's
 *   passage is symmetric in time about arrival, so a hole's centre should be under the tube then.
 */
export const GEOMETRY = Object.freeze({
  fall: 0.36,
  fallTime: 0.294,
  ball: 0.011,
  tube: 0.012,
  /** Heights above the tube's lower end. */
  gates: Object.freeze([0.06, 0.005]),
  holes: 2,
  hole: 0.018,
  radius: 0.04,
  thickness: 0.0035,
  /** Tube and hole are aligned by eye. */
  alignment: 0.001,
});

/** @typedef {typeof GEOMETRY} Geometry */

/**
 * Returns the times and speeds of one fall.
 * @param {Geometry} g
 * @param {number} [fallTime] from leaving the magnet to the tube's end
 */
export function fallOf(g, fallTime = g.fallTime) {
  const acceleration = (2 * g.fall) / fallTime ** 2;
  const timeOf = (/** @type {number} */ fallen) => Math.sqrt((2 * fallen) / acceleration);
  const arrival = timeOf(g.fall + g.ball / 2 + g.thickness / 2);
  return {
    acceleration,
    arrival,
    /** Speed on arrival. */
    speed: acceleration * arrival,
    /**
     * The times at which each gate is blocked and free again: the ball's lowest and highest point
     * pass the gate.
     */
    gates: g.gates.map((height) => ({
      blocked: timeOf(g.fall - height),
      free: timeOf(g.fall - height + g.ball),
    })),
    /** The distance that the ball has fallen. @param {number} t */
    fallen: (t) => (acceleration * Math.max(0, t) ** 2) / 2,
  };
}

/**
 * Returns whether the ball fits. In the disc's frame the ball comes at an angle theta, and sweeps
 * t/tan(theta) + d/sin(theta) of the hole's width.
 * @param {Geometry} g
 * @param {{ speed: number, turnsPerSecond: number, angle: number }} at speed of the ball, turns of
 *   the disc, and
 *   the disc's angle on arrival (0: a hole's centre under the tube)
 */
export function verdictOf(g, { speed, turnsPerSecond, angle }) {
  const pitch = (2 * Math.PI) / g.holes;
  const off = angle - Math.round(angle / pitch) * pitch;
  const holeSpeed = 2 * Math.PI * g.radius * turnsPerSecond;
  const theta = Math.atan2(speed, holeSpeed);
  const swept = g.thickness / Math.tan(theta) + g.ball / Math.sin(theta);
  /**
   * The distance by which the ball may be off to either side before it touches; negative if the
   * path is wider than the hole.
   */
  const room = (g.hole - swept) / 2;
  /** The part of `room` that the ball's play in the tube and the alignment by eye may use up. */
  const mechanics = (g.tube - g.ball) / 2 + g.alignment;
  /** Positive: the hole was already past the tube, so the disc was early. */
  const lateral = off * g.radius;
  const budget = room - mechanics;
  const marginMetres = budget - Math.abs(lateral);
  return {
    outcome: /** @type {'passes' | 'grazes' | 'hits'} */ (
      marginMetres >= 0 ? 'passes' : Math.abs(lateral) <= room ? 'grazes' : 'hits'
    ),
    theta,
    swept,
    room,
    budget,
    lateral,
    holeSpeed,
    /**
     * `lateral`, `budget` and the margin as times, in microseconds; 0 if the disc does not turn.
     */
    errorMicros: holeSpeed > 0 ? (lateral / holeSpeed) * 1e6 : 0,
    budgetMicros: holeSpeed > 0 ? (budget / holeSpeed) * 1e6 : 0,
    marginMicros: holeSpeed > 0 ? (marginMetres / holeSpeed) * 1e6 : 0,
  };
}
