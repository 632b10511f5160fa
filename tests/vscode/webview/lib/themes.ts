// The colors that the editor gives a page, for each of its four kinds of themes.
//
// Rule: only variables that the page uses, with the values of the editor's own themes.

type Colors = Record<string, string>;

const shared: Colors = {
    "font-family": "'DejaVu Sans', sans-serif",
    "font-size": "13px",
    "editor-font-family": "'DejaVu Sans Mono', monospace",
    "editor-font-size": "12px",
};

const dark: Colors = {
    foreground: "#cccccc", descriptionForeground: "#9d9d9d", "icon-foreground": "#cccccc", focusBorder: "#0078d4",
    "sideBar-background": "#181818", "editor-background": "#1f1f1f", "editorWidget-background": "#202020",
    "editorWidget-foreground": "#cccccc", "widget-border": "#313131", "widget-shadow": "#0000005c", "panel-border": "#2b2b2b",
    "input-background": "#313131", "input-foreground": "#cccccc", "input-border": "#3c3c3c", "input-placeholderForeground": "#989898",
    "button-background": "#0078d4", "button-foreground": "#ffffff", "button-hoverBackground": "#026ec1", "button-border": "#ffffff12",
    "button-secondaryBackground": "#313131", "button-secondaryForeground": "#cccccc", "button-secondaryHoverBackground": "#3c3c3c",
    "badge-background": "#616161", "badge-foreground": "#f8f8f8", "textLink-foreground": "#4daafc",
    "textPreformat-foreground": "#d0d0d0", "textPreformat-background": "#3c3c3c", "textCodeBlock-background": "#2b2b2b",
    "textBlockQuote-border": "#616161", errorForeground: "#f85149", "editorWarning-foreground": "#cca700",
    "editorLineNumber-foreground": "#8a8f98", "list-hoverBackground": "#2a2d2e", "list-activeSelectionBackground": "#04395e",
    "list-activeSelectionForeground": "#ffffff", "list-inactiveSelectionBackground": "#37373d", "toolbar-hoverBackground": "#5a5d5e50",
    "progressBar-background": "#0078d4", "banner-background": "#04395e", "banner-foreground": "#ffffff",
    "gitDecoration-addedResourceForeground": "#81b88b", "gitDecoration-deletedResourceForeground": "#e58b85",
    "diffEditor-insertedLineBackground": "#23863633", "diffEditor-removedLineBackground": "#da363333",
    "editor-selectionBackground": "#264f78", "chat-requestBackground": "#1f1f1f9e", "chat-requestBorder": "#ffffff1a",
    "charts-green": "#89d185", "charts-red": "#f14c4c", "charts-blue": "#4daafc", "charts-yellow": "#dcdcaa",
    "charts-orange": "#ce9178", "charts-purple": "#c586c0", "symbolIcon-keywordForeground": "#c586c0",
    "symbolIcon-functionForeground": "#dcdcaa", "symbolIcon-variableForeground": "#9cdcfe", "debugTokenExpression-string": "#ce9178",
    "debugTokenExpression-number": "#b5cea8", "inputValidation-infoBorder": "#0078d4",
};

const light: Colors = {
    foreground: "#3b3b3b", descriptionForeground: "#5c5c5c", "icon-foreground": "#3b3b3b", focusBorder: "#005fb8",
    "sideBar-background": "#f8f8f8", "editor-background": "#ffffff", "editorWidget-background": "#ffffff",
    "editorWidget-foreground": "#3b3b3b", "widget-border": "#e5e5e5", "widget-shadow": "#00000029", "panel-border": "#e5e5e5",
    "input-background": "#ffffff", "input-foreground": "#3b3b3b", "input-border": "#cecece", "input-placeholderForeground": "#6b6b6b",
    "button-background": "#005fb8", "button-foreground": "#ffffff", "button-hoverBackground": "#0258a8", "button-border": "#0000001a",
    "button-secondaryBackground": "#e5e5e5", "button-secondaryForeground": "#3b3b3b", "button-secondaryHoverBackground": "#cccccc",
    "badge-background": "#cccccc", "badge-foreground": "#3b3b3b", "textLink-foreground": "#005fb8",
    "textPreformat-foreground": "#3b3b3b", "textPreformat-background": "#0000001f", "textCodeBlock-background": "#f2f2f2",
    "textBlockQuote-border": "#d0d0d0", errorForeground: "#d1242f", "editorWarning-foreground": "#8f6a00",
    "editorLineNumber-foreground": "#636b74", "list-hoverBackground": "#efefef", "list-activeSelectionBackground": "#e8e8e8",
    "list-activeSelectionForeground": "#000000", "list-inactiveSelectionBackground": "#e4e6f1", "toolbar-hoverBackground": "#b8b8b850",
    "progressBar-background": "#005fb8", "banner-background": "#a2a2a2", "banner-foreground": "#000000",
    "gitDecoration-addedResourceForeground": "#3f6b2e", "gitDecoration-deletedResourceForeground": "#a0342a",
    "diffEditor-insertedLineBackground": "#9bb95533", "diffEditor-removedLineBackground": "#ff000026",
    "editor-selectionBackground": "#add6ff", "chat-requestBackground": "#ffffff7f", "chat-requestBorder": "#0000001a",
    "charts-green": "#388a34", "charts-red": "#e51400", "charts-blue": "#1a85ff", "charts-yellow": "#795e26",
    "charts-orange": "#a31515", "charts-purple": "#af00db", "symbolIcon-keywordForeground": "#af00db",
    "symbolIcon-functionForeground": "#795e26", "symbolIcon-variableForeground": "#001080", "debugTokenExpression-string": "#a31515",
    "debugTokenExpression-number": "#0b6e4f", "inputValidation-infoBorder": "#005fb8",
};

const highContrast: Colors = {
    foreground: "#ffffff", descriptionForeground: "#ffffffb3", "icon-foreground": "#ffffff", focusBorder: "#f38518",
    contrastBorder: "#6fc3df", contrastActiveBorder: "#f38518",
    "sideBar-background": "#000000", "editor-background": "#000000", "editorWidget-background": "#0c141f",
    "editorWidget-foreground": "#ffffff", "widget-border": "#6fc3df", "input-background": "#000000", "input-foreground": "#ffffff",
    "input-border": "#6fc3df", "input-placeholderForeground": "#ffffffb3", "button-foreground": "#ffffff", "button-border": "#6fc3df",
    "button-background": "#000000", "button-secondaryForeground": "#ffffff", "button-secondaryBackground": "#000000",
    "badge-background": "#000000", "badge-foreground": "#ffffff", "textLink-foreground": "#21a6ff",
    "textPreformat-foreground": "#000000", "textPreformat-background": "#ffffff", "textCodeBlock-background": "#000000",
    "textBlockQuote-border": "#ffffff", errorForeground: "#f48771", "editorWarning-foreground": "#ffd370",
    "editorLineNumber-foreground": "#ffffff", "progressBar-background": "#6fc3df",
    "gitDecoration-addedResourceForeground": "#a1e3ad", "gitDecoration-deletedResourceForeground": "#fb9d9d",
    "editor-selectionBackground": "#ffffff",
};

const highContrastLight: Colors = {
    foreground: "#292929", descriptionForeground: "#292929", "icon-foreground": "#292929", focusBorder: "#006bbd",
    contrastBorder: "#0f4a85", contrastActiveBorder: "#006bbd",
    "sideBar-background": "#ffffff", "editor-background": "#ffffff", "editorWidget-background": "#ffffff",
    "editorWidget-foreground": "#292929", "widget-border": "#0f4a85", "input-background": "#ffffff", "input-foreground": "#292929",
    "input-border": "#0f4a85", "input-placeholderForeground": "#292929b3", "button-foreground": "#ffffff", "button-border": "#0f4a85",
    "button-background": "#0f4a85", "button-secondaryForeground": "#292929", "button-secondaryBackground": "#ffffff",
    "badge-background": "#0f4a85", "badge-foreground": "#ffffff", "textLink-foreground": "#0f4a85",
    "textPreformat-foreground": "#ffffff", "textPreformat-background": "#09345f", "textCodeBlock-background": "#f2f2f2",
    "textBlockQuote-border": "#292929", errorForeground: "#b5200d", "editorWarning-foreground": "#895503",
    "editorLineNumber-foreground": "#292929", "progressBar-background": "#0f4a85",
    "gitDecoration-addedResourceForeground": "#374e06", "gitDecoration-deletedResourceForeground": "#ad0707",
    "editor-selectionBackground": "#0f4a85",
};

/** The name of a kind of theme, as the host says it, and the class that the editor gives the body. */
export const THEMES = {
    dark: { body: "vscode-dark", colors: { ...shared, ...dark } },
    light: { body: "vscode-light", colors: { ...shared, ...light } },
    highContrast: { body: "vscode-high-contrast", colors: { ...shared, ...highContrast } },
    highContrastLight: { body: "vscode-high-contrast-light", colors: { ...shared, ...highContrastLight } },
} as const;

export type Theme = keyof typeof THEMES;
