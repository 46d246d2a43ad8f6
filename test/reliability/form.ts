/** `RELIABILITY=long`: the long form, on demand (`npm run test:reliability`); else the short one of `npm test`. */
export const LONG: boolean = process.env['RELIABILITY'] === 'long';
