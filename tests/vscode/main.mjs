// The tests of the VS Code extension in the real workbench; started by `run`, which says where everything is.
import { runAll } from "./lib/runner.mjs";
import { Workbench } from "./lib/workbench.mjs";
import { script } from "./cases/script.mjs";
import "./cases/activation.mjs";
import "./cases/chat.mjs";
import "./cases/permission.mjs";
import "./cases/tools.mjs";
import "./cases/background.mjs";
import "./cases/review.mjs";
import "./cases/inline.mjs";
import "./cases/editor.mjs";
import "./cases/crash.mjs";
import "./cases/soak.mjs";

const tools = JSON.parse(process.env.KODE_VSCODE_TOOLS);
const workbench = await Workbench.start(tools, script);
try {
    await runAll(workbench, process.argv[2]);
    console.log(`outside hosts that were asked for (and refused): ${[...workbench.outside].join(", ") || "none"}`);
} finally {
    await workbench.stop(process.exitCode === 1);
}
