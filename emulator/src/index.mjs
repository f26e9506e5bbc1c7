// @ts-check
/** The API for test benches: see README.md. */
export { Machine } from './machine.mjs';
export { ImageError, parseImage, startOf } from './image.mjs';
export { EdgeHash, VcdWriter } from './analyser.mjs';
export { BusModel, MISS_CYCLES, portOf } from './bus.mjs';
export { ENTRY_CYCLES, EXIT_CYCLES } from './core.mjs';
export { Cable, Pace } from './bridge.mjs';
export { SpiFlash, TemperatureSensor, TextDisplay } from './parts.mjs';
