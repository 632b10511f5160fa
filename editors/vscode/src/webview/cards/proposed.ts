// Which hunks of the ledger a permission prompt asks about, and where they are in the diff that it shows.
//
// Rule: a hunk that has no place in the diff is never hidden: it is listed beside it.

import type { Hunk, HunkId, ListEditsResult, PermissionId, Uri } from "kode-protocol";

import type { DiffFile, DiffHunk } from "./readDiff.ts";

/** A hunk that a prompt asks about. */
export interface Proposed {
    /** The file, as shown to people. */
    readonly path: string;
    readonly uri: Uri;
    readonly hunk: Hunk;
}

/** The hunks that wait under a prompt, in the order of files and places. */
export function proposedBy(edits: ListEditsResult | undefined, permissionId: PermissionId): Proposed[] {
    return (edits?.files ?? []).flatMap(({ path, uri, hunks }) =>
        hunks.filter((hunk) => hunk.permissionId === permissionId).map((hunk) => ({ path, uri, hunk })),
    );
}

/** The hunks of the ledger in each hunk of a diff; those that are in none are under undefined. */
export function placed(
    proposed: readonly Proposed[],
    files: readonly DiffFile[],
): Map<DiffHunk | undefined, Proposed[]> {
    const places = new Map<DiffHunk | undefined, Proposed[]>();
    for (const one of proposed) {
        const file = files.find(({ path }) => isSame(path, one.path));
        const place = file?.hunks.find(({ from, lines }) => {
            // Lines of a diff count from 1, those of the ledger from 0. Added lines have no line before.
            const before = lines.filter(({ kind }) => kind === "removed" || kind === "same").length;
            const start = Math.max(0, from - 1);
            const at = one.hunk.lineRange.start;
            return at >= start && at <= start + before;
        });
        places.set(place, [...(places.get(place) ?? []), one]);
    }
    return places;
}

function isSame(left: string, right: string): boolean {
    return left === right || left.endsWith(`/${right}`) || right.endsWith(`/${left}`);
}

/** The label of a hunk in one line: its place, and what language servers say to it. */
export function hunkName({ path, hunk }: Proposed, withPath: boolean): string {
    const verdict = hunk.diagnostics ? ` (${hunk.diagnostics.summary})` : "";
    const place = `line ${hunk.lineRange.start + 1}${verdict}`;
    return withPath ? `${path}, ${place}` : place;
}

/** The hunks without those that were left out; undefined when none was. */
export function chosen(proposed: readonly Proposed[], left: ReadonlySet<HunkId>): HunkId[] | undefined {
    const ids = proposed.map(({ hunk }) => hunk.hunkId);
    const kept = ids.filter((id) => !left.has(id));
    return kept.length === ids.length ? undefined : kept;
}
