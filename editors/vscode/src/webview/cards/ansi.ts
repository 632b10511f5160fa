// Output of commands as a terminal would color it.
//
// Rule: colors and styles of the text are drawn; every other control sequence is left out, because it moves a cursor that is not
// here. Text is never hidden: the attribute for that is ignored, and so is a color that is also the background.

/** A stretch of output in one style. */
export interface Piece {
    readonly text: string;
    readonly style: Style;
}

/** How a stretch looks; colors are CSS colors. */
export interface Style {
    readonly color?: string;
    readonly background?: string;
    readonly bold?: boolean;
    readonly dim?: boolean;
    readonly italic?: boolean;
    readonly underline?: boolean;
    readonly strike?: boolean;
}

/** Styles of the text, other CSI sequences, OSC sequences with their texts, and short escapes. */
const SEQUENCES =
    /\u001b\[([\d;:]*)m|(?:\u001b\[|\u009b)[0-?]*[ -/]*[@-~]|\u001b\][^\u0007\u001b]*(?:\u0007|\u001b\\)?|\u001b[()#][ -~]|\u001b[=>78cDEHMNOZ]/g;

const NAMES = ["Black", "Red", "Green", "Yellow", "Blue", "Magenta", "Cyan", "White"];

/** Whether there is anything to draw or to leave out. */
export function hasSequences(text: string): boolean {
    return /[\u001b\u009b]/.test(text);
}

/** Cuts output into stretches of one style. */
export function pieces(text: string): Piece[] {
    const found: Piece[] = [];
    let style: Style = {};
    let place = 0;
    const add = (end: number) => {
        if (end > place) found.push({ text: text.slice(place, end), style: visible(style) });
    };
    for (const match of text.matchAll(SEQUENCES)) {
        add(match.index);
        if (match[1] !== undefined) style = styled(style, match[1]);
        place = match.index + match[0].length;
    }
    add(text.length);
    return found;
}

function visible(style: Style): Style {
    if (style.color === undefined || style.color !== style.background) return style;
    const { color: _same, ...rest } = style;
    return rest;
}

function styled(before: Style, parameters: string): Style {
    const codes = parameters.split(/[;:]/).map((code) => (code === "" ? 0 : Number(code)));
    let style = before;
    for (let index = 0; index < codes.length; index += 1) {
        const code = codes[index] ?? 0;
        if (code === 38 || code === 48) {
            const [color, used] = extended(codes.slice(index + 1));
            index += used;
            if (color !== undefined) style = { ...style, [code === 38 ? "color" : "background"]: color };
        } else {
            style = simple(style, code);
        }
    }
    return style;
}

/** Attributes by the code that sets them. */
const SET: Record<number, Style> = {
    1: { bold: true },
    2: { dim: true },
    3: { italic: true },
    4: { underline: true },
    9: { strike: true },
};

/** Attributes by the code that takes them away. */
const UNSET: Record<number, readonly (keyof Style)[]> = {
    22: ["bold", "dim"],
    23: ["italic"],
    24: ["underline"],
    29: ["strike"],
    39: ["color"],
    49: ["background"],
};

function simple(style: Style, code: number): Style {
    if (code === 0) return {};
    if (SET[code]) return { ...style, ...SET[code] };
    const gone = UNSET[code];
    if (gone) return Object.fromEntries(Object.entries(style).filter(([name]) => !gone.includes(name as keyof Style)));
    if (code === 7) return { ...style, color: style.background ?? BACK, background: style.color ?? FRONT };
    const color = named(code);
    if (color === undefined) return style;
    const isBack = (code >= 40 && code <= 47) || (code >= 100 && code <= 107);
    return { ...style, [isBack ? "background" : "color"]: color };
}

const FRONT = "var(--vscode-foreground)";
const BACK = "var(--vscode-editor-background)";

function named(code: number): string | undefined {
    if (code >= 30 && code <= 37) return themed(code - 30);
    if (code >= 40 && code <= 47) return themed(code - 40);
    if (code >= 90 && code <= 97) return themed(code - 90 + 8);
    if (code >= 100 && code <= 107) return themed(code - 100 + 8);
    return undefined;
}

function themed(index: number): string {
    return `var(--vscode-terminal-ansi${index >= 8 ? "Bright" : ""}${NAMES[index % 8] ?? ""})`;
}

/** A color of the large palette or of any kind, and how many codes it took. */
function extended([kind, ...rest]: readonly number[]): [string | undefined, number] {
    if (kind === 5) return [indexed(rest[0] ?? 0), 2];
    if (kind === 2) return [`rgb(${rest.slice(0, 3).map(bounded).join(" ")})`, 4];
    return [undefined, 0];
}

function indexed(index: number): string | undefined {
    if (index < 16) return themed(index);
    if (index > 255) return undefined;
    if (index >= 232) return `rgb(${Array.from({ length: 3 }, () => 8 + (index - 232) * 10).join(" ")})`;
    const level = (step: number) => (step === 0 ? 0 : 55 + step * 40);
    const cube = index - 16;
    return `rgb(${level(Math.floor(cube / 36))} ${level(Math.floor(cube / 6) % 6)} ${level(cube % 6)})`;
}

function bounded(part: number): number {
    return Math.min(255, Math.max(0, part || 0));
}
