// A button that is an icon alone.
//
// Rule: its label names it for screen readers and on hover.

import { Icon, type IconName } from "./Icon.tsx";

interface Props {
    icon: IconName;
    label: string;
    onClick: () => void;
    disabled?: boolean;
    /** The text on hover instead of the label. */
    title?: string;
    /** Whether it is switched on; absent for a button that is no switch. */
    pressed?: boolean;
    /** A class beside that of all such buttons. */
    extra?: string;
}

export function IconAct({ icon, label, onClick, disabled = false, title = label, pressed, extra = "" }: Props) {
    return (
        <button
            type="button"
            class={`icon-button ${extra}`.trim()}
            title={title}
            aria-label={label}
            aria-pressed={pressed}
            disabled={disabled}
            onClick={onClick}
        >
            <Icon name={icon} />
        </button>
    );
}
