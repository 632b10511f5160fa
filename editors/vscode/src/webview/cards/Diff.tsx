// A diff, hunk by hunk.
//
// Rule: a diff is read exactly: hidden and turning characters are visible in it, and signs, not colors alone, say what is
// added and removed.

import type { ComponentChildren } from "preact";
import { useMemo, useState } from "preact/hooks";

import { Icon } from "../panels/Icon.tsx";
import { counted, exact } from "../text.ts";
import { readDiff, type DiffFile, type DiffHunk } from "./readDiff.ts";

/** Lines of a hunk that are shown before one asks for more. */
const LINES = 60;

interface Props {
    unified: string;
    /** The same, where it was read already. */
    files?: readonly DiffFile[];
    /** Whether the names of the files are shown above their hunks. */
    named: boolean;
    /** Opens a file at a line. */
    onOpen?: (path: string, line: number) => void;
    /** What stands under the head of a hunk, such as the choice of its parts. */
    under?: (hunk: DiffHunk) => ComponentChildren;
}

export function Diff({ unified, files: read, named, onOpen, under }: Props) {
    const files = useMemo(() => read ?? readDiff(unified), [read, unified]);
    if (files.length === 0)
        return (
            <pre class="output" tabIndex={0} role="region" aria-label="Change">
                {exact(unified)}
            </pre>
        );
    return (
        <div class="diff">
            {files.map((file) => (
                <div key={file.path} class="diff-file">
                    {named && (
                        <div class="diff-name">
                            <bdi>{exact(file.path)}</bdi> <Counts added={file.added} removed={file.removed} />
                        </div>
                    )}
                    {file.cut !== undefined && (
                        <p class="diff-cut">
                            <Icon name="warning" />
                            {exact(file.cut)}
                        </p>
                    )}
                    {file.hunks.map((hunk, index) => (
                        <Hunk
                            key={index}
                            hunk={hunk}
                            under={under?.(hunk)}
                            {...(onOpen ? { onOpen: () => onOpen(file.path, hunk.line) } : {})}
                        />
                    ))}
                </div>
            ))}
        </div>
    );
}

export function Counts({ added, removed }: { added: number; removed: number }) {
    return (
        <span class="counts" role="img" aria-label={`${counted(added, "line")} added, ${removed} removed`}>
            <span class="added">+{added}</span> <span class="removed">−{removed}</span>
        </span>
    );
}

interface HunkProps {
    hunk: DiffHunk;
    onOpen?: () => void;
    under: ComponentChildren;
}

function Hunk({ hunk, onOpen, under }: HunkProps) {
    const [all, setAll] = useState(false);
    const lines = all ? hunk.lines : hunk.lines.slice(0, LINES);
    const place = exact(hunk.header);
    return (
        <div class="hunk">
            {onOpen ? (
                <button type="button" class="hunk-head" title="Open the file here" onClick={onOpen}>
                    {place}
                </button>
            ) : (
                <div class="hunk-head">{place}</div>
            )}
            {under}
            <pre tabIndex={0} role="region" aria-label={`Change at line ${hunk.line}`}>
                {lines.map((line, index) => (
                    <span key={index} class={`line ${line.kind}`}>
                        <span class="number" aria-hidden="true">
                            {line.after ?? line.before ?? ""}
                        </span>
                        <span class="sign">{SIGNS[line.kind]}</span>
                        {exact(line.text)}
                        {"\n"}
                    </span>
                ))}
            </pre>
            {lines.length < hunk.lines.length && (
                <button type="button" class="quiet" onClick={() => setAll(true)}>
                    Show {counted(hunk.lines.length - lines.length, "more line")}
                </button>
            )}
        </div>
    );
}

const SIGNS = { added: "+", removed: "−", same: " ", note: "\\" };
