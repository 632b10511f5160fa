// Texts of the server and the extension for people.
//
// Rule: text between backquotes is shown as code and nothing else is made of a text, which its caller has made safe to
// show. What has to be judged to the letter is not shown this way.

/** A sentence with names and values in it. */
export function Words({ text }: { text: string }) {
    const parts = text.split("`");
    // One without a partner is a character like others.
    const last = parts.length % 2 === 0 ? `\`${parts.pop()}` : "";
    return (
        <>
            {parts.map((part, index) =>
                index % 2 === 0 ? (
                    part
                ) : (
                    <code key={index} class="words">
                        {part}
                    </code>
                ),
            )}
            {last}
        </>
    );
}
