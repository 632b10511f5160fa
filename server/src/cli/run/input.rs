//! The prompts of `kode-ls run`: from the argument, standard input, or both.
//!
//! Rule: piped input is never dropped silently, and waiting for it is announced.

use std::io::{self, BufRead, IsTerminal, Read};
use std::time::Duration;

use anyhow::Context;
use kode_engine::base::task;
use serde::Deserialize;
use tokio::sync::mpsc;
use tokio::time::timeout;

use crate::cli::terminal;

/// The maximum size of standard input in bytes.
const MAX_BYTES: u64 = 4 * 1024 * 1024;

/// The delay before waiting for standard input is announced.
const SILENT: Duration = Duration::from_secs(2);

/// The source of the prompts.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Source {
    /// The argument alone.
    Argument(String),
    /// The argument, with standard input as its context.
    WithContext(String),
    /// Standard input.
    Standard,
    /// Messages on standard input, one JSON object a line.
    Messages,
}

impl Source {
    /// The source for this argument; `None` without a prompt.
    pub(super) fn of(prompt: Option<String>) -> Option<Self> {
        match prompt.as_deref() {
            Some("-") => Some(Self::Standard),
            Some(_) if is_piped() => prompt.map(Self::WithContext),
            Some(_) => prompt.map(Self::Argument),
            None => is_piped().then_some(Self::Standard),
        }
    }
}

/// Whether standard input is a file or a pipe. Terminals and devices such as `/dev/null` are not read.
fn is_piped() -> bool {
    if io::stdin().is_terminal() {
        return false;
    }
    #[cfg(unix)]
    {
        use rustix::fs::FileType;
        let stat = rustix::fs::fstat(io::stdin());
        stat.is_ok_and(|stat| {
            matches!(FileType::from_raw_mode(stat.st_mode), FileType::RegularFile | FileType::Fifo)
        })
    }
    #[cfg(not(unix))]
    true
}

/// Prompts, one after the other.
pub(super) enum Input {
    /// A single prompt, perhaps still to be read.
    One(Option<Source>),
    /// Messages from the reading thread.
    Messages(mpsc::Receiver<anyhow::Result<String>>),
}

impl Input {
    pub(super) fn open(source: Source) -> Self {
        if source != Source::Messages {
            return Self::One(Some(source));
        }
        let (sender, receiver) = mpsc::channel(16);
        // Reading standard input cannot be cancelled, so it has a thread of its own.
        std::thread::spawn(move || {
            for line in io::stdin().lock().lines() {
                let read = line.context("could not read standard input").map(|line| message(&line));
                let sent = match read {
                    Ok(Ok(Some(text))) => sender.blocking_send(Ok(text)),
                    Ok(Ok(None)) => Ok(()),
                    Ok(Err(error)) | Err(error) => sender.blocking_send(Err(error)),
                };
                if sent.is_err() {
                    return;
                }
            }
        });
        Self::Messages(receiver)
    }

    /// The next prompt; `None` at the end.
    ///
    /// # Errors
    /// Read errors and invalid messages.
    pub(super) async fn next(&mut self) -> anyhow::Result<Option<String>> {
        match self {
            Self::Messages(messages) => messages.recv().await.transpose(),
            Self::One(source) => match source.take() {
                None | Some(Source::Messages) => Ok(None),
                Some(Source::Argument(prompt)) => Ok(Some(prompt)),
                Some(Source::Standard) => Ok(Some(standard_input().await?)),
                Some(Source::WithContext(prompt)) => {
                    let context = standard_input().await?;
                    Ok(Some(with_context(prompt, &context)))
                }
            },
        }
    }
}

/// Joins a prompt with its piped context.
fn with_context(prompt: String, context: &str) -> String {
    if context.trim().is_empty() {
        return prompt;
    }
    let end = if context.ends_with('\n') { "" } else { "\n" };
    format!("{prompt}\n\n<standard-input>\n{context}{end}</standard-input>")
}

/// Reads standard input to its end.
async fn standard_input() -> anyhow::Result<String> {
    let mut reading = task::spawn_blocking(|| {
        let mut bytes = Vec::new();
        io::stdin().lock().take(MAX_BYTES + 1).read_to_end(&mut bytes).map(|_| bytes)
    });
    let read = match timeout(SILENT, &mut reading).await {
        Ok(read) => read,
        Err(_) => {
            terminal::error_line("Waiting for standard input to end… Add `< /dev/null` to run without it.");
            reading.await
        }
    };
    let bytes = read.context("standard input")?.context("could not read standard input")?;
    anyhow::ensure!(
        bytes.len() as u64 <= MAX_BYTES,
        "standard input exceeds {MAX_BYTES} bytes. Save it to a file and name the file in the prompt"
    );
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// A line of JSON with a user message.
#[derive(Deserialize)]
struct InputLine {
    #[serde(rename = "type")]
    kind: String,
    message: Option<InputMessage>,
}

#[derive(Deserialize)]
struct InputMessage {
    content: Content,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Content {
    Text(String),
    Blocks(Vec<ContentBlock>),
}

#[derive(Deserialize)]
struct ContentBlock {
    #[serde(rename = "type")]
    kind: String,
    text: Option<String>,
}

/// The text of a line; `None` for an empty one.
fn message(line: &str) -> anyhow::Result<Option<String>> {
    if line.trim().is_empty() {
        return Ok(None);
    }
    let how = "invalid line on standard input; expected {\"type\":\"user\",\"message\":{\"role\":\"user\",\"content\":\"…\"}}";
    let InputLine { kind, message } = serde_json::from_str(line).context(how)?;
    anyhow::ensure!(kind == "user", "unsupported message type `{kind}` on standard input; expected `user`");
    let content = message.map(|message| message.content).context(how)?;
    let text = match content {
        Content::Text(text) => text,
        Content::Blocks(blocks) => {
            let texts = blocks.into_iter().map(|block| match (block.kind.as_str(), block.text) {
                ("text", Some(text)) => Ok(text),
                (kind, _) => Err(anyhow::anyhow!(
                    "unsupported content block `{kind}` on standard input; expected `text`"
                )),
            });
            texts.collect::<anyhow::Result<Vec<_>>>()?.join("\n")
        }
    };
    Ok(Some(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_a_text_or_blocks_of_text() {
        let read = |line: &str| message(line).map_err(|error| error.to_string());
        let plain = r#"{"type":"user","message":{"role":"user","content":"mend it"}}"#;
        let blocks = r#"{"type":"user","message":{"content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}}"#;
        assert_eq!(read(plain), Ok(Some("mend it".to_owned())));
        assert_eq!(read(blocks), Ok(Some("a\nb".to_owned())));
        assert_eq!(read("  "), Ok(None));
        let image = r#"{"type":"user","message":{"content":[{"type":"image"}]}}"#;
        for bad in ["mend it", r#"{"type":"user"}"#, r#"{"type":"assistant"}"#, image] {
            assert!(read(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn context_follows_the_prompt_in_a_marked_block() {
        assert_eq!(with_context("review".into(), "+a"), "review\n\n<standard-input>\n+a\n</standard-input>");
        assert_eq!(with_context("review".into(), " \n"), "review");
    }
}
