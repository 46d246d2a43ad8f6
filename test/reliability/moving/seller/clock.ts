/* Time is moved: days pass at once, for the seller as for the buyer. */

const real = Date.now.bind(Date);
let offsetMs = 0;
Date.now = () => real() + offsetMs;

export const moveClock = (ms: number): void => {
  offsetMs = ms;
};
