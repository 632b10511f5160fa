// The colors of code in the editor's color theme, read from the file of the theme.
//
// Rule: the editor has no API for them. What cannot be read leaves the page to its own colors; a file is read once for each theme.

import { parse } from "jsonc-parser";
import * as vscode from "vscode";
import { customized, tokenColors, type ThemeRule, type TokenColors } from "../logic/themeColors.ts";
import { messageOf } from "../logic/words.ts";

/** How many files may include each other. */
const MOST_INCLUDES = 8;

/** The largest file of a theme that is read, in bytes. */
const LARGEST = 4_000_000;

/** A theme as an extension's manifest has it. */
interface Contributed {
    readonly id?: string;
    readonly label?: string;
    readonly path?: string;
}

/** The colors of code of the active theme. */
export class CodeColors implements vscode.Disposable {
    private readonly changed = new vscode.EventEmitter<void>();
    private readonly subscriptions: vscode.Disposable[];
    private readonly rules = new Map<string, readonly ThemeRule[]>();
    private current: TokenColors = {};

    /** The colors are others now. */
    readonly onChange = this.changed.event;

    constructor(private readonly log: vscode.LogOutputChannel) {
        const look = () => void this.look();
        this.subscriptions = [
            this.changed,
            vscode.window.onDidChangeActiveColorTheme(look),
            vscode.extensions.onDidChange(look),
            vscode.workspace.onDidChangeConfiguration((change) => {
                const settings = ["workbench.colorTheme", "editor.tokenColorCustomizations"];
                if (settings.some((setting) => change.affectsConfiguration(setting))) look();
            }),
        ];
        look();
    }

    /** The colors by the kind of token. */
    get colors(): TokenColors {
        return this.current;
    }

    dispose(): void {
        for (const subscription of this.subscriptions) subscription.dispose();
    }

    private async look(): Promise<void> {
        const name = themeName();
        const custom = vscode.workspace.getConfiguration("editor").get<unknown>("tokenColorCustomizations");
        const colors = customized(tokenColors(await this.rulesOf(name)), custom, name);
        if (name !== themeName() || JSON.stringify(colors) === JSON.stringify(this.current)) return;
        this.current = colors;
        this.changed.fire();
    }

    private async rulesOf(name: string): Promise<readonly ThemeRule[]> {
        const known = this.rules.get(name);
        if (known) return known;
        const file = fileOf(name);
        if (!file) return [];
        try {
            const rules = await readRules(file, MOST_INCLUDES);
            this.rules.set(name, rules);
            return rules;
        } catch (error) {
            this.log.info(`the colors of the theme ${name} could not be read: ${messageOf(error)}`);
            return [];
        }
    }
}

/** The name of the active theme; the editor may choose it by the system's colors. */
function themeName(): string {
    const settings = vscode.workspace.getConfiguration();
    const { kind } = vscode.window.activeColorTheme;
    const isContrast = kind === vscode.ColorThemeKind.HighContrast || kind === vscode.ColorThemeKind.HighContrastLight;
    const isDark = kind === vscode.ColorThemeKind.Dark || kind === vscode.ColorThemeKind.HighContrast;
    const preferred = `workbench.preferred${isContrast ? "HighContrast" : ""}${isContrast && isDark ? "" : isDark ? "Dark" : "Light"}ColorTheme`;
    const follows = settings.get(isContrast ? "window.autoDetectHighContrast" : "window.autoDetectColorScheme", false);
    const chosen = settings.get<string>("workbench.colorTheme", "");
    // High contrast of the system replaces a theme without high contrast.
    return follows && (!isContrast || kindOf(chosen) !== kind) ? settings.get<string>(preferred, chosen) : chosen;
}

function kindOf(name: string): vscode.ColorThemeKind | undefined {
    const base = contributed(name)?.theme.uiTheme;
    const kinds: Record<string, vscode.ColorThemeKind> = {
        vs: vscode.ColorThemeKind.Light,
        "vs-dark": vscode.ColorThemeKind.Dark,
        "hc-black": vscode.ColorThemeKind.HighContrast,
        "hc-light": vscode.ColorThemeKind.HighContrastLight,
    };
    return base === undefined ? undefined : kinds[base];
}

function contributed(name: string): { extension: vscode.Uri; theme: Contributed & { uiTheme?: string } } | undefined {
    for (const { extensionUri, packageJSON } of vscode.extensions.all) {
        const themes = (packageJSON as { contributes?: { themes?: (Contributed & { uiTheme?: string })[] } }).contributes?.themes;
        const theme = themes?.find(({ id, label }) => id === name || label === name);
        if (theme) return { extension: extensionUri, theme };
    }
    return undefined;
}

function fileOf(name: string): vscode.Uri | undefined {
    const found = contributed(name);
    const path = found?.theme.path;
    // The older format of themes is XML.
    return found && path?.endsWith(".json") ? vscode.Uri.joinPath(found.extension, path) : undefined;
}

/** The rules of a theme, those of included files first. */
async function readRules(file: vscode.Uri, depth: number): Promise<ThemeRule[]> {
    const bytes = await vscode.workspace.fs.readFile(file);
    if (bytes.byteLength > LARGEST) throw new Error("The file of the theme is too large.");
    const theme = parse(new TextDecoder().decode(bytes)) as { include?: unknown; tokenColors?: unknown } | undefined;
    const folder = vscode.Uri.joinPath(file, "..");
    const included = typeof theme?.include === "string" && depth > 0 ? vscode.Uri.joinPath(folder, theme.include) : undefined;
    const before = included ? await readRules(included, depth - 1) : [];
    return Array.isArray(theme?.tokenColors) ? [...before, ...(theme.tokenColors as ThemeRule[])] : before;
}
