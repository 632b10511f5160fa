// A diff, hunk by hunk: colored as code, with what changed within lines.
//
// Rule: a diff is read exactly: hidden and turning characters are visible in it, and signs, not colors alone, show added
// and removed. No line is left out without its number being told.

import type { ComponentChildren } from "preact";
import { useMemo, useState } from "preact/hooks";

import { useSelect } from "../app/context.ts";
import { useTokens } from "../markdown/highlight.ts";
import { languageOfFile, type TokenLine } from "../markdown/tokens.ts";
import { Icon } from "../panels/Icon.tsx";
import { counted, exact, exactLine } from "../text.ts";
import { useWidth } from "../width.ts";
import type { Part } from "../../logic/intraline.ts";
import { drawnLines, pairs, sidesOf, type DrawnLine } from "./lines.ts";
import { readDiff, type DiffFile, type DiffHunk } from "./readDiff.ts";

/** Lines of a hunk that are shown before the user asks for more. */
const LINES = 60;

/** The least width of a page in which two sides stand beside each other, in pixels. */
const SPLIT = 760;

interface Props {
    unified: string;
    /** The same, where it was read already. */
    files?: readonly DiffFile[];
    /** Whether the names of the files are shown above their hunks. */
    named: boolean;
    /** The file that an unnamed diff is of, for its colors. */
    path?: string;
    /** Opens a file at a line. */
    onOpen?: (path: string, line: number) => void;
    /** The content under the header of a hunk, such as the choice of its parts. */
    under?: (hunk: DiffHunk) => ComponentChildren;
}

export function Diff({ unified, files: read, named, path, onOpen, under }: Props) {
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
                    {named && <FileName file={file} />}
                    {file.cut !== undefined && (
                        <p class="diff-cut">
                            <Icon name="warning" />
                            {exact(file.cut)}
                        </p>
                    )}
                    {file.hunks.map((hunk, index) => (
                        <Hunk
                            key={index}
                            path={file.path === "" ? (path ?? "") : file.path}
                            hunk={hunk}
                            before={file.hunks[index - 1]}
                            under={under?.(hunk)}
                            {...(onOpen ? { onOpen: () => onOpen(file.path, hunk.line) } : {})}
                        />
                    ))}
                </div>
            ))}
        </div>
    );
}

function FileName({ file }: { file: DiffFile }) {
    const path = exactLine(file.path);
    const cut = path.lastIndexOf("/") + 1;
    return (
        <div class="diff-name">
            <span>
                <bdi class="title-name">{path.slice(cut)}</bdi>
                {cut > 0 && <bdi class="title-folder">{path.slice(0, cut - 1)}</bdi>}
            </span>
            <Counts added={file.added} removed={file.removed} />
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
    path: string;
    hunk: DiffHunk;
    /** The hunk above it; absent for the first. */
    before: DiffHunk | undefined;
    onOpen?: () => void;
    under: ComponentChildren;
}

function Hunk({ path, hunk, before, onOpen, under }: HunkProps) {
    const [all, setAll] = useState(false);
    const shown = all ? hunk : { ...hunk, lines: hunk.lines.slice(0, LINES) };
    const left = hunk.lines.length - shown.lines.length;
    return (
        <div class="hunk">
            <HunkHead hunk={hunk} before={before} {...(onOpen ? { onOpen } : {})} />
            {under}
            <Lines path={path} hunk={shown} />
            {left > 0 && (
                <button type="button" class="quiet" onClick={() => setAll(true)}>
                    Show {counted(left, "more line")}
                </button>
            )}
        </div>
    );
}

/** The lines between a hunk and the one above it; nothing above the beginning of a file. */
function HunkHead({ hunk, before, onOpen }: Pick<HunkProps, "hunk" | "before"> & { onOpen?: () => void }) {
    const above = before ? before.from + before.lines.filter(({ kind }) => kind === "same" || kind === "removed").length : 1;
    const skipped = hunk.from - above;
    const context = exactLine(/^@@[^@]*@@ ?(.*)$/.exec(hunk.header)?.[1] ?? "");
    if (skipped <= 0 && context === "") return null;
    const inside = (
        <>
            <span>{before ? counted(Math.max(0, skipped), "line") : `Line ${Math.max(1, hunk.from)}`}</span>
            {context !== "" && <code>{context}</code>}
        </>
    );
    if (!onOpen) return <div class="hunk-head">{inside}</div>;
    return (
        <button type="button" class="hunk-head" title={`Open the file at line ${hunk.line}`} onClick={onOpen}>
            {inside}
        </button>
    );
}

function Lines({ path, hunk }: { path: string; hunk: DiffHunk }) {
    const width = useWidth();
    const layout = useSelect((state) => state.host?.settings.diffLayout ?? "auto");
    const language = languageOfFile(path);
    const sides = useMemo(() => sidesOf(hunk), [hunk.lines.length, hunk.header]);
    const before = useTokens(sides.before, language);
    const after = useTokens(sides.after, language);
    const isSplit = layout === "split" || (layout === "auto" && width >= SPLIT);
    const tokensFor = ({ line, at }: DrawnLine) => (line.kind === "removed" ? before : after)?.[at];
    const label = `Change at line ${hunk.line}`;
    if (isSplit)
        return (
            <div class="hunk-lines split" tabIndex={0} role="region" aria-label={label}>
                {pairs(hunk).map((pair, index) => (
                    <div key={index} class="line">
                        <Half side="removed" line={pair.before} tokens={pair.before && before?.[pair.before.at]} />
                        <Half side="added" line={pair.after} tokens={pair.after && after?.[pair.after.at]} />
                    </div>
                ))}
            </div>
        );
    return (
        <div class="hunk-lines" tabIndex={0} role="region" aria-label={label}>
            {drawnLines(hunk).map((drawn, index) => (
                <div key={index} class={`line ${drawn.line.kind}`}>
                    <LineCells drawn={drawn} number={drawn.line.after ?? drawn.line.before} tokens={tokensFor(drawn)} />
                </div>
            ))}
        </div>
    );
}

interface HalfProps {
    side: "removed" | "added";
    line: DrawnLine | undefined;
    tokens: TokenLine | undefined;
}

/** One side of a line, beside the other. */
function Half({ side, line, tokens }: HalfProps) {
    if (!line) return <span class="half none" />;
    const isChanged = line.line.kind === side;
    return (
        <span class={isChanged ? `half ${side}` : "half"}>
            <LineCells drawn={line} number={side === "removed" ? line.line.before : line.line.after} tokens={tokens} />
        </span>
    );
}

interface CellsProps {
    drawn: DrawnLine;
    number: number | undefined;
    tokens: TokenLine | undefined;
}

function LineCells({ drawn: { line, changed }, number, tokens }: CellsProps) {
    return (
        <>
            <span class="number" aria-hidden="true">
                {number ?? ""}
            </span>
            <span class="sign">{SIGNS[line.kind]}</span>
            <span class="text">{piecesOf(line.text, tokens, changed)}</span>
        </>
    );
}

/** A line in pieces: each has one color, and is changed or not. */
function piecesOf(text: string, tokens: TokenLine | undefined, changed: readonly Part[]): ComponentChildren {
    const pieces: ComponentChildren[] = [];
    let place = 0;
    for (const { text: piece, kind } of tokens ?? [{ text, kind: "" }]) {
        const end = place + piece.length;
        for (const { start, stop, isChanged } of cut(place, end, changed)) {
            const shown = exact(text.slice(start, stop));
            const classes = [kind, isChanged ? "changed" : ""].filter(Boolean).join(" ");
            pieces.push(
                classes === "" ? (
                    shown
                ) : (
                    <span key={start} class={classes}>
                        {shown}
                    </span>
                ),
            );
        }
        place = end;
    }
    return pieces;
}

/** A stretch of a line, cut where something that changed begins or ends. */
function cut(from: number, to: number, changed: readonly Part[]) {
    const edges = changed.flatMap(({ start, end }) => [start, end]).filter((edge) => edge > from && edge < to);
    const places = [from, ...edges.toSorted((a, b) => a - b), to];
    return places.slice(0, -1).map((start, index) => ({
        start,
        stop: places[index + 1] ?? to,
        isChanged: changed.some((part) => part.start <= start && start < part.end),
    }));
}

const SIGNS = { added: "+", removed: "−", same: " ", note: "\\" };
