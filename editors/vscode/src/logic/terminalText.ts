// Output of commands for the editor's terminal.
//
// Rule: colors and styles pass, all other control sequences are left out: they could move the cursor over earlier
// output, name the terminal, or write to the clipboard. Nothing is shown before it is known whether it belongs to a sequence.

/** The longest unfinished sequence that is held back; a longer one counts as text. */
const LONGEST_SEQUENCE = 4_096;

/** Colors and styles; other CSI sequences; OSC, DCS and the like with their texts; short escapes; line ends; other controls. */
const SEQUENCES =
    /(\u001b\[[\d;:]*m)|\u001b\[[0-?]*[ -/]*[@-~]|\u001b[\]PX^_][^\u0007\u001b]*(?:\u0007|\u001b\\)|\u001b[ -/]*[0-~]|(\r?\n)|[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]/g;

/** The beginning of a sequence at the end of a text. */
const UNFINISHED =
    /(?:\u001b(?:\[[0-?]*[ -/]*|[\]PX^_][^\u0007\u001b]*\u001b?|[ -/]*)|\r)$/;

/** Makes text for a terminal of output that comes piece by piece. */
export class TerminalText {
    private held = "";

    /** The text for the terminal of the next piece. */
    next(piece: string): string {
        const text = this.held + piece;
        const found = UNFINISHED.exec(text);
        const start = found && text.length - found.index <= LONGEST_SEQUENCE ? found.index : text.length;
        this.held = text.slice(start);
        return shown(text.slice(0, start));
    }

    /** The rest of the text for the terminal, once nothing comes any more. */
    end(): string {
        const rest = shown(this.held);
        this.held = "";
        return rest;
    }
}

function shown(text: string): string {
    return text.replace(SEQUENCES, (_, style?: string, lineEnd?: string) => style ?? (lineEnd === undefined ? "" : "\r\n"));
}
