// The tests of the chat as users have it; started by `run`, which says where everything is.
import { runAll } from "./lib/runner.mjs";
import { Workbench } from "./lib/workbench.mjs";
import { script } from "./cases/script.mjs";
import "./cases/page.mjs";
import "./cases/windows.mjs";

const workbench = await Workbench.start(JSON.parse(process.env.KODE_VSCODE_TOOLS), script);
try {
    await runAll(workbench, process.argv[2]);
} finally {
    await workbench.stop(process.exitCode === 1);
}
