//! Patches as the diffs of the protocol: one diff for each hunk.
//!
//! Rule: a diff shows the lines of its hunk, context included; a created file has no old text. A deleted file is named by its
//! old path, a moved one by its new path.

use std::path::PathBuf;

use agent_client_protocol_schema::v1::Diff;

/// The placeholder for the path of a missing file.
const NO_FILE: &str = "/dev/null";

/// The diffs of a unified patch. `place` finds the file behind a path as the patch shows it.
pub(super) fn diffs(unified: &str, place: &dyn Fn(&str) -> PathBuf) -> Vec<Diff> {
    let mut reader = PatchReader { path: String::new(), is_created: false, hunk: None, diffs: Vec::new() };
    for line in unified.lines() {
        reader.line(line, place);
    }
    reader.end_hunk(place);
    reader.diffs
}

struct PatchReader {
    path: String,
    is_created: bool,
    hunk: Option<HunkText>,
    diffs: Vec<Diff>,
}

/// A hunk that is being read.
struct HunkText {
    old: String,
    new: String,
    /// Lines of each side that are still to come, as the head of the hunk says.
    old_left: usize,
    new_left: usize,
}

impl PatchReader {
    fn line(&mut self, line: &str, place: &dyn Fn(&str) -> PathBuf) {
        if let Some(hunk) = &mut self.hunk
            && hunk.takes(line)
        {
            return;
        }
        if line.starts_with('\\') {
            return;
        }
        self.end_hunk(place);
        if let Some(old) = line.strip_prefix("--- ") {
            self.is_created = old == NO_FILE;
            old.strip_prefix("a/").unwrap_or(old).clone_into(&mut self.path);
        } else if let Some(new) = line.strip_prefix("+++ ") {
            if new != NO_FILE {
                new.strip_prefix("b/").unwrap_or(new).clone_into(&mut self.path);
            }
        } else {
            self.hunk = HunkText::of_head(line);
        }
    }

    fn end_hunk(&mut self, place: &dyn Fn(&str) -> PathBuf) {
        let Some(hunk) = self.hunk.take() else { return };
        let diff = Diff::new(place(&self.path), hunk.new);
        self.diffs.push(if self.is_created { diff } else { diff.old_text(hunk.old) });
    }
}

impl HunkText {
    /// A hunk with this head; `None` for any other line.
    fn of_head(line: &str) -> Option<Self> {
        let (old, rest) = line.strip_prefix("@@ -")?.split_once(" +")?;
        let (new, _) = rest.split_once(" @@")?;
        let lines = |side: &str| match side.split_once(',') {
            Some((_, lines)) => lines.parse().ok(),
            None => Some(1),
        };
        Some(Self { old: String::new(), new: String::new(), old_left: lines(old)?, new_left: lines(new)? })
    }

    /// Adds a line, if it is one of the hunk's. Counted by the head, so that a removed `-- x` is no head of a file.
    fn takes(&mut self, line: &str) -> bool {
        let (mark, text) = match line.chars().next() {
            Some(mark @ (' ' | '-' | '+')) => (mark, &line[1..]),
            _ => return false,
        };
        let (is_old, is_new) = (mark != '+', mark != '-');
        if (is_old && self.old_left == 0) || (is_new && self.new_left == 0) {
            return false;
        }
        let sides =
            [(is_old, &mut self.old, &mut self.old_left), (is_new, &mut self.new, &mut self.new_left)];
        for (is_in, side, left) in sides {
            if is_in {
                side.push_str(text);
                side.push('\n');
                *left -= 1;
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(unified: &str) -> Vec<(String, Option<String>, String)> {
        let place = |path: &str| PathBuf::from("/w").join(path);
        let shown = |diff: Diff| (diff.path.display().to_string(), diff.old_text, diff.new_text);
        diffs(unified, &place).into_iter().map(shown).collect()
    }

    #[test]
    fn each_hunk_is_a_diff_of_its_own_lines() {
        let unified =
            "--- a/x.rs\n+++ b/x.rs\n@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n@@ -9,1 +9,2 @@\n-i\n+I\n+j\n";
        assert_eq!(
            read(unified),
            [
                ("/w/x.rs".into(), Some("a\nb\nc\n".into()), "a\nB\nc\n".into()),
                ("/w/x.rs".into(), Some("i\n".into()), "I\nj\n".into()),
            ]
        );
    }

    #[test]
    fn a_created_file_has_no_old_text_and_a_removed_dash_line_is_no_head() {
        assert_eq!(
            read("--- /dev/null\n+++ b/n.txt\n@@ -0,0 +1,1 @@\n+one\n\\ No newline at end of file\n"),
            [("/w/n.txt".into(), None, "one\n".into())]
        );
        assert_eq!(
            read(
                "--- a/q.sql\n+++ b/q.sql\n@@ -1,2 +1,1 @@\n--- old\n x\n--- a/r\n+++ b/r\n@@ -1,1 +1,1 @@\n-1\n+2\n"
            ),
            [
                ("/w/q.sql".into(), Some("-- old\nx\n".into()), "x\n".into()),
                ("/w/r".into(), Some("1\n".into()), "2\n".into()),
            ]
        );
    }

    #[test]
    fn a_deleted_file_is_shown_at_its_old_path_and_a_moved_one_at_its_new_path() {
        assert_eq!(
            read(
                "--- a/old.txt\n+++ /dev/null\n@@ -1,1 +0,0 @@\n-gone\n--- a/x.sh\n+++ b/bin/x.sh\n@@ -1,1 +1,1 @@\n-a\n+b\n"
            ),
            [
                ("/w/old.txt".into(), Some("gone\n".into()), String::new()),
                ("/w/bin/x.sh".into(), Some("a\n".into()), "b\n".into()),
            ]
        );
    }

    #[test]
    fn a_text_that_is_no_patch_has_no_diffs() {
        assert_eq!(read("logo.png: binary file, 11 bytes"), []);
    }
}
