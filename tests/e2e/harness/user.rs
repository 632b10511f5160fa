//! The simulated user: comments that are typed into the open file, one character at a time.
//!
//! Rule: each character is a notification of its own, at the place that the ones before it have reached. Where a comment is
//! in the end follows from the exercise alone, whatever the agent does meanwhile.

use std::collections::VecDeque;

use kode_e2e::Typing;

use crate::harness::exercise::Exercise;

/// The comment behind the first line of the file, typed before a turn and while the model answers.
pub(super) const TOP: usize = 0;
/// The comment in the middle, typed while the user is asked and while the edit arrives.
pub(super) const MIDDLE: usize = 1;
/// The comment at the end of the file, typed while the server carries the edit out.
pub(super) const BOTTOM: usize = 2;

/// The user of one file.
#[derive(Debug)]
pub(super) struct TypingUser {
    comments: [TypedComment; 3],
}

#[derive(Debug)]
struct TypedComment {
    /// The line behind which it is typed, with the typed text so far; `None` at the end of the file.
    reached: Option<String>,
    left: VecDeque<char>,
}

/// The line of a comment, without its line break.
pub(super) fn comment_line(exercise: &Exercise, place: usize) -> String {
    let words =
        ["naïve, isn't it?", "faster → later 🙂", "why \"-1\" & not <0>?", "wait: 50 % of these…"][place];
    format!("{} note {place} on {}: {words}", exercise.language.comment(), exercise.name)
}

/// A text with the comments of the user, where they are in the end.
pub(super) fn with_comments(exercise: &Exercise, text: &str, places: &[usize]) -> String {
    let mut text = text.to_owned();
    for &place in places {
        let line = format!("\n{}", comment_line(exercise, place));
        let at = match place {
            BOTTOM => text.len(),
            _ => {
                let anchor = if place == TOP { exercise.first_line() } else { &exercise.anchor };
                text.find(anchor).unwrap() + anchor.len()
            }
        };
        text.insert_str(at, &line);
    }
    text
}

impl TypingUser {
    pub(super) fn new(exercise: &Exercise) -> Self {
        let anchors = [Some(exercise.first_line()), Some(exercise.anchor.as_str()), None];
        let comments = [TOP, MIDDLE, BOTTOM].map(|place| TypedComment {
            reached: anchors[place].map(str::to_owned),
            left: exercise.on_disk(&format!("\n{}", comment_line(exercise, place))).chars().collect(),
        });
        Self { comments }
    }

    /// The next characters of a comment, at most this many.
    pub(super) fn next(&mut self, place: usize, count: usize) -> Vec<Typing> {
        let comment = &mut self.comments[place];
        let count = count.min(comment.left.len());
        let mut typed: Vec<char> = comment.left.drain(..count).collect();
        // One key is one line break.
        if typed.last() == Some(&'\r') {
            typed.extend(comment.left.pop_front());
        }
        keys(&typed).iter().map(|key| comment.type_key(key)).collect()
    }

    /// All that is left to type.
    pub(super) fn rest(&mut self) -> Vec<Typing> {
        [TOP, MIDDLE, BOTTOM].into_iter().flat_map(|place| self.next(place, usize::MAX)).collect()
    }
}

impl TypedComment {
    fn type_key(&mut self, key: &str) -> Typing {
        let Some(reached) = &mut self.reached else { return Typing::at(u16::MAX, key) };
        let typing = Typing::after(reached, key);
        reached.push_str(key);
        typing
    }
}

/// A line typed behind another one, a character at a time.
pub(super) fn line_behind(exercise: &Exercise, anchor: &str, line: &str) -> Vec<Typing> {
    let left = exercise.on_disk(&format!("\n{line}")).chars().collect();
    let mut comment = TypedComment { reached: Some(anchor.to_owned()), left };
    let typed: Vec<char> = comment.left.drain(..).collect();
    keys(&typed).iter().map(|key| comment.type_key(key)).collect()
}

/// Characters as keys: a line break of two characters is one.
fn keys(typed: &[char]) -> Vec<String> {
    let mut keys: Vec<String> = Vec::new();
    for char in typed {
        match keys.last_mut() {
            Some(last) if last == "\r" => last.push(*char),
            _ => keys.push(char.to_string()),
        }
    }
    keys
}
