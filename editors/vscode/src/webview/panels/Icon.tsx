// The few pictures of the page, drawn with the color of the text around them.
//
// Rule: a picture never is all that tells something; it is hidden from screen readers, and words stand beside it or name
// the button it is in.

const PATHS = {
    add: "M8 3v10M3 8h10",
    agent: "M4 6.5h8v6H4zM8 6.5V4M6.2 9v1M9.8 9v1M8 4a.9.9 0 1 0 0-1.8A.9.9 0 0 0 8 4z",
    archive: "M2.5 4h11v2.5h-11zM3.5 6.5V13h9V6.5M6.5 9h3",
    attach: "M11.5 7.5 7.4 11.6a2.2 2.2 0 0 1-3.1-3.1l5-5a1.5 1.5 0 0 1 2.1 2.1l-5 5",
    back: "M10 3 5 8l5 5",
    check: "m3 8.5 3.2 3.2L13 4.8",
    chevron: "m6 4 4 4-4 4",
    close: "m4 4 8 8M12 4l-8 8",
    command: "m3.5 4.5 3.5 3.5-3.5 3.5M8.5 11.5h4",
    copy: "M5.5 5.5h7v7h-7zM3.5 10.5v-7h7",
    diff: "M8 3v6M5 6h6M5 12.5h6",
    down: "m4 6 4 4 4-4",
    edit: "m3 13 .6-2.6L10.8 3.200l2 2L5.6 12.400zM9.5 4.500l2 2",
    eye: "M1.5 8C3 5.200 5.300 3.800 8 3.800S13 5.200 14.5 8C13 10.800 10.700 12.200 8 12.200S3 10.800 1.500 8zM8 10a2 2 0 1 0 0-4 2 2 0 0 0 0 4z",
    export: "M8 10V2.500M5 5.500l3-3 3 3M3 10v3.500h10V10",
    file: "M4 2.500h5l3 3v8H4zM9 2.500v3h3",
    folder: "M2.5 4h4l1.2 1.500h5.800v7h-11z",
    fork: "M5 3v10M5 9c4 0 6-1 6-5M11 4l-1.8 1.800M11 4l1.8 1.8",
    goal: "M8 14A6 6 0 1 0 8 2a6 6 0 0 0 0 12zM8 11a3 3 0 1 0 0-6 3 3 0 0 0 0 6zM8 8h.01",
    history: "M8 4.500V8l2.5 1.500M3 8a5 5 0 1 0 1.6-3.700M3 3v2.500h2.5",
    image: "M2.5 3.500h11v9h-11zM3 11l3-3 2.5 2.500L10.5 9 13 11.500M10.5 6.500h.1",
    info: "M8 14A6 6 0 1 0 8 2a6 6 0 0 0 0 12zM8 7.500V11M8 5h.01",
    branch: "M4.5 10.5v-5M4.5 5.5a2 2 0 1 0 0-4 2 2 0 0 0 0 4zM4.5 14.5a2 2 0 1 0 0-4 2 2 0 0 0 0 4zM11.5 7.5a2 2 0 1 0 0-4 2 2 0 0 0 0 4zM11.5 7.5c0 3-7 1-7 3",
    list: "M5.5 4h8M5.5 8h8M5.5 12h8M2.5 4h.6M2.5 8h.6M2.5 12h.6",
    key: "M10 6.500a3 3 0 1 0-2.900 3L8.500 11H10v1.500h1.500V14H14v-2.500l-4.200-4.200A3 3 0 0 0 10 6.500zM6.500 6.300h.1",
    look: "M7 11.500a4.5 4.5 0 1 0 0-9 4.5 4.5 0 0 0 0 9zM10.2 10.2 13.5 13.5",
    play: "M5 3.500v9l7-4.500z",
    plan: "M4 2.500h8v11H4zM6 5.500h4M6 8h4M6 10.500h2.5",
    queue: "M2.5 4h11M2.5 8h11M2.5 12h6",
    question: "M6 6.200A2 2 0 1 1 8.6 8c-.5.2-.6.5-.6 1.200M8 11.500h.01M8 14A6 6 0 1 0 8 2a6 6 0 0 0 0 12z",
    reply: "M6.500 4 3 7.500 6.500 11M3 7.500h6a4 4 0 0 1 4 4v1",
    retry: "M12.500 7.500a4.6 4.6 0 1 1-1.500-3.300M12.500 2.500v3h-3",
    send: "M8 13V3.500M4 7l4-4 4 4",
    settings:
        "M2.5 5h7M12 5h1.500M2.5 11H4M6.5 11h7M10.8 6.500a1.5 1.5 0 1 0 0-3 1.5 1.5 0 0 0 0 3zM5.2 12.500a1.5 1.5 0 1 0 0-3 1.5 1.5 0 0 0 0 3z",
    shield: "M8 2.5 3.5 4v4c0 2.7 2 4.6 4.5 5.5 2.5-.9 4.5-2.8 4.5-5.500V4z",
    steer: "M3 13V9c0-2 1.5-3 3.5-3H13M10 3l3 3-3 3",
    stop: "M4.5 4.500h7v7h-7z",
    symbol: "M8 2.500 13 5.300v5.400L8 13.500 3 10.700V5.300zM3 5.300 8 8l5-2.700M8 8v5.500",
    think: "M8 2.500a4 4 0 0 0-2.5 7.100V11h5V9.600A4 4 0 0 0 8 2.500zM6 13h4",
    trash: "M3.5 4.500h9M6.5 4.500V3h3v1.500M5 4.500l.5 8.500h5l.5-8.5",
    undo: "M3 6.500h6.500a3 3 0 0 1 0 6H6M3 6.5 6 3.500M3 6.500l3 3",
    up: "m4 10 4-4 4 4",
    warning: "M8 2.5 14 13H2zM8 6.500V9.500M8 11.300h.01",
    web: "M8 14A6 6 0 1 0 8 2a6 6 0 0 0 0 12zM2.2 8h11.600M8 2c-4 4-4 8 0 12M8 2c4 4 4 8 0 12",
} as const;

export type IconName = keyof typeof PATHS;

export function Icon({ name }: { name: IconName }) {
    return (
        <svg class="icon" viewBox="0 0 16 16" aria-hidden="true" focusable="false">
            <path d={PATHS[name]} />
        </svg>
    );
}

/** A ring that turns while something runs. */
export function Spinner() {
    return <span class="spinner" aria-hidden="true" />;
}
