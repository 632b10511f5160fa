// The model's answers in the tests of the VS Code extension, by the first words of the prompt.
//
// Rule: one program for each kind of turn; whatever a case looks for in the editor is named here and nowhere else.

const text = (words) => ({ type: "text", text: words });
const call = (name, input) => ({ type: "tool_use", name, input });
const read = (file) => call("Read", { file_path: `{{cwd}}/${file}` });
const edit = (file, from, to) =>
    call("Edit", { file_path: `{{cwd}}/${file}`, old_string: from, new_string: to });

/** The files and edits of the soak. */
export const SOAK = { files: 5, edits: 30 };

/** The name of a file of the soak. */
export const soakFile = (number) => `other${number}.txt`;

/** The text of a file of the soak. */
export const soakText = (prefix, lines) =>
    Array.from({ length: lines }, (_, line) => `${prefix} line ${line} is as it was\n`).join("");

function soak() {
    const files = Array.from({ length: SOAK.files }, (_, number) => soakFile(number));
    const edits = Array.from({ length: SOAK.edits }, (_, number) => {
        const file = soakFile(number % SOAK.files);
        const line = Math.floor(number / SOAK.files) * 3;
        return { content: [edit(file, `agent line ${line} is as it was`, `agent line ${line} was changed`)] };
    });
    return [{ content: files.map(read) }, ...edits, { content: [text("The soak is over.")] }];
}

/** The edits into the file that the user types into. */
export const SHARED_EDITS = 30;

function shared() {
    const edits = Array.from({ length: SHARED_EDITS }, (_, number) => ({
        content: [edit("shared.txt", `agent line ${number * 2} is as it was`, `agent line ${number * 2} was changed`)],
    }));
    return [{ content: [read("shared.txt")] }, ...edits, { content: [text("All is shared.")] }];
}

/** The edits of one schedule of typing into the file that the agent edits. */
export const SCHEDULE_EDITS = 5;

function schedule() {
    const edits = Array.from({ length: SCHEDULE_EDITS }, (_, number) => ({
        content: [edit("dirty.txt", `agent line ${number * 10} is as it was`, `agent line ${number * 10} was changed`)],
    }));
    return [{ content: [read("dirty.txt")] }, ...edits, { content: [text("This schedule is over.")] }];
}

const lsp = (operation, more) =>
    call("LSP", { operation, filePath: "two.ts", line: 5, character: 10, ...more });

/** The calls to the language servers of the editor. */
const LANGUAGE_CALLS = [
    lsp("goToDefinition"),
    lsp("goToImplementation"),
    lsp("findReferences"),
    lsp("hover"),
    lsp("documentSymbol"),
    lsp("workspaceSymbol", { query: "alpha" }),
    lsp("incomingCalls"),
    call("CallHierarchy", { symbol: "beta", file_path: "two.ts", line: 3, direction: "outgoing" }),
    call("CodeActions", { file_path: "two.ts", line: 7 }),
    call("Format", { file_path: "one.ts" }),
    call("RenameSymbol", { symbol: "alpha", file_path: "one.ts", line: 2, new_name: "omega" }),
    read("two.ts"),
    edit("two.ts", "return omega(4)", 'return omega("4")'),
];

export const script = {
    programs: [
        { when: "^hello", steps: [{ content: [text("Hello from the scripted model, piece by piece.")], chunk: 4 }] },
        {
            when: "^wait",
            steps: [{ content: [text("It waited, and goes on.")], gate: "wait", gate_after_events: 4, chunk: 4 }],
        },
        // Each test has a gate of its own: a released gate stays open for all later tests.
        ...["view", "tab", "window"].map((where) => ({
            when: `^hold ${where}`,
            steps: [{ content: [text("It was held, and goes on.")], gate: `hold-${where}`, gate_after_events: 4, chunk: 4 }],
        })),
        {
            when: "^change two places",
            steps: [
                { content: [read("a.txt")] },
                { content: [edit("a.txt", "two", "TWO\nand a half")] },
                { content: [edit("a.txt", "eight", "EIGHT")] },
                { content: [text("Both places are changed.")] },
            ],
        },
        {
            when: "^spoil a word",
            steps: [
                { content: [call("Symbols", { file_path: "a.word" })] },
                { content: [read("a.word")] },
                { content: [edit("a.word", "hmm", "oops")] },
                { content: [text("It is wrong in another way.")] },
            ],
        },
        { when: "^change a place", steps: [{ content: [read("a.txt")] }, { content: [edit("a.txt", "two", "TWO")] }, { content: [text("Done.")] }] },
        {
            when: "^refine the place",
            steps: [{ content: [edit("a.txt", "three", "THREE")] }, { content: [text("It is louder now.")] }],
        },
        {
            when: "^change a word",
            steps: [
                { content: [read("a.txt")] },
                { content: [edit("a.txt", "price * count", "price * amount")] },
                { content: [text("The word is changed.")] },
            ],
        },
        {
            when: "^create a file",
            steps: [
                { content: [call("Write", { file_path: "{{cwd}}/new.txt", content: "new\n" })] },
                { content: [text("It is there.")] },
            ],
        },
        {
            when: "^change three files",
            steps: [
                { content: [read("a.txt"), read("b.txt"), read("c.txt")] },
                { content: [edit("a.txt", "two", "TWO"), edit("b.txt", "two", "TWO"), edit("c.txt", "two", "TWO")] },
                { content: [text("Three files are changed.")] },
            ],
        },
        {
            when: "^I have a comment",
            steps: [
                { content: [edit("b.txt", "nine", "NINE")] },
                { content: [text("Comment 1: It ends louder now.")] },
            ],
        },
        {
            when: "^I have 2 comments",
            steps: [
                {
                    content: [
                        text("I looked at both.\n\n**Comment 1:** It is [louder](command:x) now.\n\nComment 2: It stays as it is."),
                    ],
                },
            ],
        },
        {
            when: "^make",
            steps: [
                { content: [call("Bash", { command: "touch made-it", description: "Make [it](command:x)" })] },
                { content: [text("It said: {{last_result}}")] },
            ],
        },
        {
            when: "^build",
            steps: [
                {
                    content: [
                        call("Bash", {
                            command: "printf '\\033[32mgreen\\033[0m \\033]0;title\\007one\\n'; until [ -e go-on ]; do sleep 0.05; done; echo two",
                        }),
                    ],
                },
                { content: [text("It said: {{last_result}}")] },
            ],
        },
        {
            when: "^serve",
            steps: [
                { content: [call("Bash", { command: "echo up; sleep 600", run_in_background: true })] },
                { content: [text("It is up.")] },
            ],
        },
        {
            when: "^pick a color",
            steps: [
                {
                    content: [
                        call("AskUserQuestion", {
                            questions: [
                                {
                                    question: "Which color?",
                                    header: "Color",
                                    multiSelect: false,
                                    options: [
                                        { label: "Red", description: "Warm" },
                                        { label: "Blue", description: "Cold" },
                                    ],
                                },
                            ],
                        }),
                    ],
                },
                { content: [text("It is picked.")] },
            ],
        },
        {
            when: "^count",
            steps: [
                { content: [call("mcp__probe_tools__count_words", { text: "one two three" })] },
                { content: [text("I counted: {{last_result}}")] },
            ],
        },
        {
            when: "^note",
            steps: [
                { content: [call("mcp__vscode__probe_note", { text: "tea" })] },
                { content: [text("I noted: {{last_result}}")] },
            ],
        },
        {
            when: "^save before",
            steps: [
                { content: [read("a.txt")] },
                { content: [edit("a.txt", "two", "TWO")] },
                { content: [call("Bash", { command: "cat a.txt", description: "Look at the file" })] },
                { content: [text("The disk says: {{last_result}}")] },
            ],
        },
        {
            when: "^what is wrong",
            steps: [
                { content: [call("Diagnostics", { path: "{{cwd}}/a.txt" })] },
                { content: [text("They say: {{last_result}}")] },
            ],
        },
        { when: "^ask language servers", steps: [...LANGUAGE_CALLS.map((made) => ({ content: [made] })), { content: [text("Renamed.")] }] },
        { when: "^show colors", steps: [{ content: [text("Here:\n\n```ts\nconst a = 1;\n```\n")] }] },
        { when: "^show code", steps: [{ content: [text("Here:\n\n```\nTWO\nTHREE\n```\n")] }] },
        { when: "^Explain", steps: [{ content: [text("It counts, and that is all.")] }] },
        { when: "^soak", steps: soak() },
        { when: "^shared", steps: shared() },
        { when: "^schedule", steps: schedule() },
        { steps: [{ content: [text("There is no program for this prompt.")] }] },
    ],
    // The lists of a server that is compatible with OpenAI's, and of an Ollama.
    quirks: {
        pages: {
            "/v1/models": { data: [{ id: "large-test" }, { id: "small-test" }] },
            "/api/tags": { models: [{ name: "gemma-test:4b", model: "gemma-test:4b" }] },
            "/api/show": { capabilities: ["completion", "tools"], model_info: { "gemma3.context_length": 32_768 } },
            "/api/ps": { models: [] },
        },
    },
};
