// A text of the model as it is read.
//
// Rule: finished blocks are rendered once. Of a text that grows only the open block is rendered again, and of code that
// grows only the text node.

import { useLayoutEffect, useRef } from "preact/hooks";

import { useApp } from "../app/context.ts";
import { memo } from "../memo.tsx";
import { exact } from "../text.ts";
import { cutBlocks, NO_BLOCKS, openFence, type Blocks } from "./blocks.ts";
import { drawLater } from "./drawn.ts";
import { highlightLater } from "./highlight.ts";
import { showImages } from "./images.ts";
import { languageOf, renderBlock, renderOpenBlock } from "./render.ts";

export interface MarkdownProps {
    text: string;
    /** Whether nothing is added to the text any more. */
    complete: boolean;
}

/** Markdown that may still grow. */
export function Rendered({ text, complete }: MarkdownProps) {
    const cut = useRef<{ text: string; blocks: Blocks }>({ text: "", blocks: NO_BLOCKS });
    if (cut.current.text !== text) {
        cut.current = { text, blocks: cutBlocks(cut.current.blocks, cut.current.text, text) };
    }
    const { closed, open } = cut.current.blocks;
    return (
        <div class="markdown" dir="auto">
            {closed.map((source, index) => (
                <Block key={index} source={source} />
            ))}
            {open.trim() !== "" &&
                (complete ? <Block key="open" source={open} /> : <OpenBlock key="open" source={open} />)}
        </div>
    );
}

const Block = memo(function Block({ source }: { source: string }) {
    const app = useApp();
    const element = useRef<HTMLDivElement>(null);
    useLayoutEffect(() => {
        if (!element.current) return;
        highlightLater(element.current);
        drawLater(element.current);
        showImages(element.current, app);
    }, [source]);
    // biome-ignore lint/security/noDangerouslySetInnerHtml: it has been through DOMPurify
    return <div ref={element} class="block" dangerouslySetInnerHTML={{ __html: renderBlock(source) }} />;
});

function OpenBlock({ source }: { source: string }) {
    const fence = openFence(source);
    // biome-ignore lint/security/noDangerouslySetInnerHtml: it has been through DOMPurify
    if (!fence) return <div class="block" dangerouslySetInnerHTML={{ __html: renderOpenBlock(source) }} />;
    const language = languageOf(fence.info);
    return (
        <div class="block">
            <div class="code growing">
                <div class="code-head">
                    <span class="code-language">{language || "text"}</span>
                </div>
                <pre tabIndex={0} role="region" aria-label="Code">
                    <code>{exact(fence.code)}</code>
                </pre>
            </div>
        </div>
    );
}
