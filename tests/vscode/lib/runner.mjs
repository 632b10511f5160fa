// Runs test cases one after the other and says how they went, in a line that counts them.
//
// Rule: a case that fails shows why and where its pictures are, and does not keep the others from running.
const cases = [];

/** Says what a case is called and what it does with its tools. */
export function test(name, run) {
    cases.push({ name, run });
}

/** Runs the cases whose names match, and sets the exit code. */
export async function runAll(tools, filter) {
    let passed = 0;
    let failed = 0;
    for (const { name, run } of cases) {
        if (filter && !new RegExp(filter).test(name)) continue;
        const start = Date.now();
        const seconds = () => ((Date.now() - start) / 1000).toFixed(1);
        try {
            await run(tools);
            passed += 1;
            console.log(`ok    ${name} (${seconds()} s)`);
        } catch (error) {
            failed += 1;
            console.log(`FAIL  ${name} (${seconds()} s)\n${error.stack ?? error}`);
            await tools.failed?.(name);
        } finally {
            await tools.closeWindows?.();
        }
    }
    // Not in the form of a summary of all: the script that runs this counts it in.
    console.log(`workbench: ${passed} passed, ${failed} failed`);
    process.exitCode = failed > 0 || passed === 0 ? 1 : 0;
}

/** Waits until `look` gives something that holds; reports the last value when it does not within the limit. */
export async function eventually(what, look, limitMs = 20_000) {
    const end = Date.now() + limitMs;
    let last;
    for (;;) {
        try {
            last = await look();
            if (last) return last;
        } catch (error) {
            last = error;
        }
        if (Date.now() > end) throw new Error(`${what}: not within ${limitMs} ms; last: ${String(last)}`);
        await new Promise((resolve) => setTimeout(resolve, 50));
    }
}
