// Runs every case, or those that CASES names, one after another, and prints a line of
// JSON for each.
import './sandbox.mjs'
import './life.mjs'
import './commands.mjs'
import './files.mjs'
import './links.mjs'
import './interpreter.mjs'
import './more.mjs'
import { runAll } from './suite.mjs'

await runAll(process.env.CASES)
process.exit(0) // connections that SDKs keep open do not hold it
