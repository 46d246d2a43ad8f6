/** Express 4 under its alias: what the tests use of it has the types of version 5. */
declare module 'express4' {
  import express from 'express';
  export default express;
}
