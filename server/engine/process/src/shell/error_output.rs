//! The end of the standard error output of a program that runs beside the agent.
//!
//! Rule: the output is read to its end, so that the program never blocks on it; only the last [`KEPT`] bytes are kept.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::io::AsyncReadExt;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::pipes::Receiver;

/// The kept bytes of the output.
const KEPT: usize = 8 << 10;
/// The most bytes of one read.
const READ_SIZE: usize = 16 << 10;
/// How long the rest of the output of an ended program is waited for. Programs that it started may hold the pipe open.
const REST_LIMIT: Duration = Duration::from_secs(1);

/// The end of a program's standard error output. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct ErrorOutput {
    kept: Arc<Mutex<VecDeque<u8>>>,
    /// Cancelled once all of it was read.
    read: CancellationToken,
}

impl ErrorOutput {
    /// The kept output as text, without control characters.
    #[must_use]
    pub fn text(&self) -> String {
        let kept = self.kept.lock();
        let bytes: Vec<u8> = kept.iter().copied().collect();
        let text = String::from_utf8_lossy(&bytes);
        let clean =
            |char: char| if char.is_control() && char != '\n' && char != '\t' { '\u{fffd}' } else { char };
        text.trim().chars().map(clean).collect()
    }

    /// Waits until the output of an ended program is read to its end, for one second at most.
    pub async fn settle(&self) {
        // Later output is missing in the text and nothing else.
        let _ = timeout(REST_LIMIT, self.read.cancelled()).await;
    }

    /// Reads the output to its end.
    pub async fn read_from(self, mut errors: Receiver) {
        let _read = self.read.clone().drop_guard();
        let mut buffer = vec![0; READ_SIZE];
        while let Ok(length) = errors.read(&mut buffer).await {
            if length == 0 {
                break;
            }
            self.push(&buffer[..length]);
        }
    }

    fn push(&self, bytes: &[u8]) {
        let mut kept = self.kept.lock();
        kept.extend(bytes);
        let over = kept.len().saturating_sub(KEPT);
        kept.drain(..over);
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn only_the_end_of_the_output_is_kept() {
        let errors = ErrorOutput::default();
        errors.push(&vec![b'x'; KEPT * 3]);
        errors.push(b"\x1b[31mthe end\n");
        let text = errors.text();
        assert!(text.len() <= KEPT * 2 && text.ends_with("[31mthe end"), "{}", &text[text.len() - 20..]);
        assert!(!text.contains('\u{1b}'));
    }

    #[tokio::test]
    async fn the_last_output_of_an_ended_program_is_waited_for() {
        let (errors, mut writer) = crate::pipes::from_program().unwrap();
        let kept = ErrorOutput::default();
        tokio::spawn(kept.clone().read_from(errors));
        writer.write_all(b"last output\n").unwrap();
        drop(writer);
        kept.settle().await;
        assert_eq!(kept.text(), "last output");
    }
}
