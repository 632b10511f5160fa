// Figures of the page with a session of five thousand messages: to open it, to keep it, to scroll it, to stream into it.
//
// Rule: each figure is beside its floor of the same run, the same with an almost empty session, and is marked where it
// has a budget. Nothing is asserted here.

import { type Browser, chromium, type Page } from "playwright-core";

import { ChatPage } from "./lib/host";
import { LONG_MESSAGES, longFiles, longPrograms, makeLong, pieces } from "./lib/long";
import { Project, text } from "./lib/project";

const programs = [
    ...longPrograms,
    pieces,
    { steps: [{ content: [text("Short.")] }] },
];

/** As many frames as a stream has. */
const BARE_FRAMES = 300;

const median = (numbers: number[]) =>
    numbers.sort((a, b) => a - b)[Math.floor(numbers.length / 2)] ?? Number.NaN;
const round = (value: number) => Math.round(value * 10) / 10;

/** Prints a line of the table: a figure and, where it has a budget, its ratio to that. */
function row(name: string, value: number, unit: string, budget?: number): void {
    const mark = budget === undefined ? "" : `  ${budget} ${unit}  ${value <= budget ? "ok" : "OVER"}`;
    console.log(`  ${name.padEnd(54)} ${`${value} ${unit}`.padEnd(12)}${mark}`.trimEnd());
}

async function openings(chat: ChatPage, selector: string): Promise<number> {
    const times: number[] = [];
    for (let index = 0; index < 7; index += 1) {
        await chat.load();
        await chat.page.waitForSelector(selector);
        times.push(
            await chat.page.evaluate((selector) => {
                const [entry] = performance.getEntriesByType("navigation") as PerformanceNavigationTiming[];
                if (!document.querySelector(selector)) throw new Error("it is not there");
                const marked = (window as unknown as { shownAt?: number }).shownAt;
                return (marked ?? performance.now()) - (entry?.startTime ?? 0);
            }, selector),
        );
    }
    return round(median(times));
}

/** Starts to take the times between frames of a page; `framesOf` ends it. */
async function takeFrames(page: Page): Promise<void> {
    await page.evaluate(() => {
        const gaps: number[] = [];
        (window as unknown as { gaps: number[] }).gaps = gaps;
        let last = performance.now();
        const frame = (now: number) => {
            gaps.push(now - last);
            last = now;
            requestAnimationFrame(frame);
        };
        requestAnimationFrame((now) => {
            last = now;
            requestAnimationFrame(frame);
        });
    });
}

/** The time between two frames that 19 of 20 stay below, in milliseconds. */
async function framesOf(page: Page): Promise<number> {
    const gaps = await page.evaluate(() => (window as unknown as { gaps: number[] }).gaps);
    gaps.sort((a, b) => a - b);
    return round(gaps[Math.floor(gaps.length * 0.95)] ?? Number.NaN);
}

/** The same of a page with nothing on it, over as long as a stream takes. */
async function bareFrames(browser: Browser): Promise<number> {
    const page = await browser.newPage();
    await takeFrames(page);
    await page.waitForFunction((count) => (window as unknown as { gaps: number[] }).gaps.length >= count, BARE_FRAMES);
    const frames = await framesOf(page);
    await page.close();
    return frames;
}

async function figures(chat: ChatPage, label: string, bare: number): Promise<void> {
    const client = await chat.page.context().newCDPSession(chat.page);
    const heap = async () => {
        await client.send("HeapProfiler.collectGarbage");
        const { usedSize } = (await client.send("Runtime.getHeapUsage")) as { usedSize: number };
        return round(usedSize / 1_048_576);
    };
    await chat.page.addInitScript(() => {
        const observer = new MutationObserver(() => {
            if (!document.querySelector(".row .said")) return;
            observer.disconnect();
            requestAnimationFrame(
                () => ((window as unknown as { shownAt: number }).shownAt = performance.now()),
            );
        });
        document.addEventListener("DOMContentLoaded", () =>
            observer.observe(document.body, { childList: true, subtree: true }),
        );
    });
    console.log(`\n${label.padEnd(69)}  budget`);
    row("open (navigation to first rows painted), median of 7", await openings(chat, ".row .said"), "ms", 500);
    row("heap after that", await heap(), "MB", 120);
    const scrolled = await chat.page.evaluate(async () => {
        const box = document.querySelector(".scroller");
        if (!box) throw new Error("there is no list");
        const frame = () => new Promise<number>((resolve) => requestAnimationFrame(resolve));
        const gaps: number[] = [];
        let last = await frame();
        for (let index = 0; index < 240; index += 1) {
            box.scrollTop += index % 120 < 60 ? -120 : 120;
            const now = await frame();
            gaps.push(now - last);
            last = now;
        }
        gaps.sort((a, b) => a - b);
        return {
            p50: gaps[120],
            p95: gaps[228],
            max: gaps[239],
            rows: document.querySelectorAll(".row").length,
        };
    });
    console.log(
        `  scroll, ms between frames: p50 ${round(scrolled.p50 ?? 0)}, p95 ${round(scrolled.p95 ?? 0)}, max ${round(scrolled.max ?? 0)}; rows on the page ${scrolled.rows}`,
    );
    await chat.page.evaluate(() => {
        const scope = window as unknown as { long: number[] };
        scope.long = [];
        new PerformanceObserver((list) =>
            scope.long.push(...list.getEntries().map((entry) => entry.duration)),
        ).observe({ type: "longtask" });
    });
    const before = chat.sent;
    const begun = Date.now();
    await takeFrames(chat.page);
    await chat.say("pieces");
    await chat.page.waitForSelector(".working");
    await chat.page.waitForSelector(".working", { state: "detached", timeout: 120_000 });
    const long = await chat.page.evaluate(() => (window as unknown as { long: number[] }).long);
    const seconds = (Date.now() - begun) / 1_000;
    console.log(`  stream of 20,000 pieces in ${round(seconds)} s and ${chat.sent - before} messages`);
    row("its longest task", round(Math.max(0, ...long)), "ms", 50);
    row(`its frames, 95th percentile (bare page: ${bare} ms)`, await framesOf(chat.page), "ms", 2 * bare);
    row("heap after that", await heap(), "MB", 120);
}

async function main(): Promise<void> {
    const project = await Project.create(programs);
    for (const [name, content] of Object.entries(longFiles)) project.write(name, content);
    const server = await project.start();
    const executablePath = process.env["CHROMIUM"] ?? "chromium";
    const browser = await chromium.launch({ executablePath, args: ["--no-sandbox"] });
    const { sessionId: short } = await server.request("agent/session/new", {});
    const done = server.event(({ event }) => event.type === "done", "the end");
    await server.request("agent/turn/start", { sessionId: short, input: [{ type: "text", text: "hello" }] });
    await done;
    const sessionId = await makeLong(server);
    for (const [label, id] of [
        ["floor: a session of one message", short],
        [`a session of ${LONG_MESSAGES} messages`, sessionId],
    ] as const) {
        const chat = await ChatPage.open(browser, project, server, { state: { sessionId: id } });
        await figures(chat, label, await bareFrames(browser));
        const answers: number[] = [];
        for (let index = 0; index < 7; index += 1) {
            const begun = performance.now();
            await server.request("agent/session/load", { sessionId: id, items: 100 });
            answers.push(performance.now() - begun);
        }
        row("the server's answer alone, median of 7", round(median(answers)), "ms");
        await chat.close();
    }
    const chat = await ChatPage.open(browser, project, server, { state: { sessionId } });
    await chat.page.waitForSelector(".row .said");
    const begun = Date.now();
    for (let round = 0; round < 400; round += 1) {
        await chat.page.locator(".scroller").evaluate((element) => element.scrollTo(0, 0));
        await chat.page.evaluate(
            () => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve))),
        );
        if ((await chat.page.locator(".user", { hasText: "part 0" }).count()) > 0) break;
    }
    console.log(`all of it paged back in ${round((Date.now() - begun) / 1_000)} s`);
    await figuresOfWhole(chat);
    await chat.close();
    await browser.close();
    await server.close();
    project.close();
}

async function figuresOfWhole(chat: ChatPage): Promise<void> {
    const client = await chat.page.context().newCDPSession(chat.page);
    await client.send("HeapProfiler.collectGarbage");
    const { usedSize } = (await client.send("Runtime.getHeapUsage")) as { usedSize: number };
    row("heap with all of it on this side", round(usedSize / 1_048_576), "MB", 120);
}

void main();
