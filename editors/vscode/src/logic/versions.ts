// Which of two versions is the newer one, and whether the user learns that theirs is old.
//
// Rule: nothing is fetched. The extension knows its own version and hears that of the server, and no more is checked.

/** Time without a further notification. */
const REST_MS = 60 * 60 * 1_000;

/** The state that windows share. */
export interface Told {
    /** The version of the extension that the user does not want to learn of. */
    readonly skipped?: string;
    /** When they were told last, in milliseconds. */
    readonly at?: number;
}

/** Compares two versions: negative when the first is older. A build before a release is older than that release. */
export function compareVersions(left: string, right: string): number {
    const [leftCore = "", leftPre] = split(left);
    const [rightCore = "", rightPre] = split(right);
    const rights = rightCore.split(".").map(Number);
    for (const [index, part] of leftCore.split(".").map(Number).entries()) {
        const difference = part - (rights[index] ?? 0);
        if (difference !== 0) return difference;
    }
    if (leftPre === rightPre) return 0;
    if (leftPre === undefined) return 1;
    if (rightPre === undefined) return -1;
    return leftPre.localeCompare(rightPre, "en", { numeric: true });
}

function split(version: string): [string, string | undefined] {
    const [core = "", ...pre] = version.replace(/^v/, "").replace(/\+.*$/, "").split("-");
    return [core, pre.length > 0 ? pre.join("-") : undefined];
}

/** Whether the user learns that the server is older than the extension. */
export function tellsOfOld(server: string, extension: string, told: Told, now: number): boolean {
    if (!/^v?\d+\.\d+\.\d+/.test(server) || compareVersions(server, extension) >= 0) return false;
    if (told.skipped === extension) return false;
    return told.at === undefined || now - told.at >= REST_MS || now < told.at;
}
